//! What all calls use: the settings, the admin client, and what is open by the names that cases give it.

use std::collections::HashMap;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::KafkaResult;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::util::get_rdkafka_version;
use serde_json::{json, Value};

use crate::answers::{Answer, Failure, Names};
use crate::members::Member;
use crate::records::ReportingProducer;

/// Below the 30 seconds that any call may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const PATIENCE_MS: i64 = 20_000;

const MANIFEST: &str = include_str!("../Cargo.toml");

pub struct Driver {
    pub names: Names,
    pub members: HashMap<String, Member>,
    pub producers: HashMap<String, ReportingProducer>,
    settings: ClientConfig,
    admin: Option<AdminClient<DefaultClientContext>>,
}

impl Driver {
    pub fn new(bootstrap: &str, names: Names) -> Driver {
        let mut settings = ClientConfig::new();
        settings
            .set_log_level(RDKafkaLogLevel::Emerg)
            .set("bootstrap.servers", bootstrap)
            .set("client.id", "ottla-matrix")
            .set("socket.timeout.ms", PATIENCE_MS.to_string())
            // What it does not know it asks for again soon, and it does not hope long for a topic that is not there.
            .set("topic.metadata.refresh.fast.interval.ms", "20")
            .set("topic.metadata.propagation.max.ms", "1000")
            .set("retry.backoff.ms", "20")
            .set("retry.backoff.max.ms", "100");
        Driver { names, members: HashMap::new(), producers: HashMap::new(), settings, admin: None }
    }

    pub fn admin(&mut self) -> KafkaResult<&AdminClient<DefaultClientContext>> {
        if self.admin.is_none() {
            self.admin = Some(self.settings.create()?);
        }
        Ok(self.admin.as_ref().expect("made above"))
    }

    pub fn settings(&self, own: &[(&str, &str)]) -> ClientConfig {
        let mut settings = self.settings.clone();
        for (name, value) in own {
            settings.set(*name, *value);
        }
        settings
    }

    /// A consumer that commits nothing by itself.
    pub fn consumer(&self, group: &str, own: &[(&str, &str)]) -> KafkaResult<BaseConsumer> {
        self.settings(own).set("group.id", group).set("enable.auto.commit", "false").create()
    }

    pub fn member(&mut self, given: &Value) -> Result<&mut Member, Failure> {
        let name = text(given, "as");
        self.members.get_mut(name).ok_or_else(|| Failure::Local(format!("no member is called {name}")))
    }

    pub fn producer(&self, given: &Value) -> Result<&ReportingProducer, Failure> {
        let name = text(given, "as");
        self.producers.get(name).ok_or_else(|| Failure::Local(format!("no producer is called {name}")))
    }
}

pub fn version() -> Answer {
    let pinned = MANIFEST.lines().find(|line| line.starts_with("rdkafka ")).and_then(|line| line.split('"').nth(1));
    let version = pinned.unwrap_or_default().trim_start_matches('=');
    let (_, librdkafka) = get_rdkafka_version();
    Ok(json!({ "library": "rust-rdkafka", "version": format!("{version} (librdkafka {librdkafka})") }))
}

pub fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(PATIENCE)).operation_timeout(Some(PATIENCE))
}

pub fn text<'a>(given: &'a Value, name: &str) -> &'a str {
    given[name].as_str().unwrap_or_default()
}

pub fn int32(value: &Value) -> i32 {
    value.as_i64().unwrap_or_default() as i32
}

/// `{topic: {partition: offset}}` as the library takes it.
pub fn places(offsets: &Value) -> Result<TopicPartitionList, Failure> {
    let mut list = TopicPartitionList::new();
    for (topic, partitions) in offsets.as_object().into_iter().flatten() {
        add_partitions(&mut list, topic, partitions)?;
    }
    Ok(list)
}

pub fn add_partitions(list: &mut TopicPartitionList, topic: &str, partitions: &Value) -> Result<(), Failure> {
    for (partition, offset) in partitions.as_object().into_iter().flatten() {
        let number = partition.parse().map_err(|_| Failure::Local(format!("no number: {partition}")))?;
        list.add_partition_offset(topic, number, Offset::from_raw(offset.as_i64().unwrap_or_default()))?;
    }
    Ok(())
}
