//! Members of groups.

use std::collections::{BTreeMap, HashSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Value};

use crate::answers::{encoded, words, Answer, Failure};
use crate::library::{places, text, Driver, PATIENCE};

const ASSIGNORS: [&str; 3] = ["range", "roundrobin", "cooperative-sticky"];
const FENCED_INSTANCE_ID: i32 = 82;
const AT_ONCE: usize = 1000;

pub struct Member {
    pub consumer: BaseConsumer,
    positions: BTreeMap<(String, i32), i64>,
}

pub fn join(driver: &mut Driver, given: &Value) -> Answer {
    if let Some(assignor) = given["assignor"].as_str().filter(|name| !ASSIGNORS.contains(name)) {
        return Err(Failure::Unsupported(format!("librdkafka has no assignor {assignor}")));
    }
    let session_ms = given["session_ms"].as_i64().map(|time| time.to_string());
    let mut own = vec![("auto.offset.reset", "earliest"), ("fetch.wait.max.ms", "100")];
    for (setting, argument) in [
        ("group.protocol", "protocol"),
        ("partition.assignment.strategy", "assignor"),
        ("group.remote.assignor", "remote_assignor"),
        ("group.instance.id", "instance_id"),
        ("isolation.level", "isolation"),
    ] {
        own.extend(given[argument].as_str().map(|value| (setting, value)));
    }
    if given["protocol"] != "consumer" {
        own.push(("heartbeat.interval.ms", "200"));
        own.extend(session_ms.as_deref().map(|time| ("session.timeout.ms", time)));
    }
    let consumer = driver.consumer(text(given, "group"), &own)?;
    match given["pattern"].as_str() {
        Some(pattern) if pattern.starts_with('^') => consumer.subscribe(&[pattern])?,
        Some(pattern) => consumer.subscribe(&[&format!("^{pattern}")])?,
        None => consumer.subscribe(&words(&given["topics"]))?,
    }
    driver.members.insert(text(given, "as").to_owned(), Member { consumer, positions: BTreeMap::new() });
    Ok(Value::Null)
}

fn fenced_or(error: KafkaError) -> Failure {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::Fenced) => Failure::Refused(FENCED_INSTANCE_ID, error.to_string()),
        _ => error.into(),
    }
}

pub fn poll(driver: &mut Driver, given: &Value) -> Answer {
    let wait = Duration::from_millis(given["wait_ms"].as_u64().unwrap_or_default());
    let member = driver.member(given)?;
    let mut records = Vec::new();
    while records.len() < AT_ONCE {
        let patience = if records.is_empty() { wait } else { Duration::ZERO };
        let Some(polled) = member.consumer.poll(patience) else { break };
        let message = polled.map_err(fenced_or)?;
        member.positions.insert((message.topic().to_owned(), message.partition()), message.offset() + 1);
        records.push(json!({
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "key": encoded(message.key()),
            "value": encoded(message.payload()),
        }));
    }
    let mut assignment: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for each in member.consumer.assignment()?.elements() {
        assignment.entry(each.topic().to_owned()).or_default().push(each.partition());
    }
    assignment.values_mut().for_each(|partitions| partitions.sort_unstable());
    Ok(json!({ "assignment": assignment, "records": records }))
}

pub fn commit(driver: &mut Driver, given: &Value) -> Answer {
    let member = driver.member(given)?;
    let wanted = if given["offsets"].is_null() {
        let owned: HashSet<(String, i32)> = member.consumer.assignment()?.to_topic_map().into_keys().collect();
        let mut list = TopicPartitionList::new();
        for ((topic, partition), offset) in member.positions.iter().filter(|(place, _)| owned.contains(place)) {
            list.add_partition_offset(topic, *partition, Offset::Offset(*offset))?;
        }
        list
    } else {
        places(&given["offsets"])?
    };
    committed(&member.consumer, &wanted)
}

/// Commit and wait; the library does not ask again by itself when the coordinator was not ready.
pub fn committed(consumer: &BaseConsumer, offsets: &TopicPartitionList) -> Answer {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let error = match consumer.commit(offsets, CommitMode::Sync) {
            Ok(()) => return Ok(Value::Null),
            Err(error) => error,
        };
        let not_ready = matches!(
            error.rdkafka_error_code(),
            Some(
                RDKafkaErrorCode::CoordinatorLoadInProgress
                    | RDKafkaErrorCode::CoordinatorNotAvailable
                    | RDKafkaErrorCode::NotCoordinator
            )
        );
        if !not_ready || Instant::now() > deadline {
            return Err(error.into());
        }
        sleep(Duration::from_millis(100));
    }
}

/// A member leaves when it is dropped.
pub fn leave(driver: &mut Driver, given: &Value) -> Answer {
    driver.member(given)?;
    driver.members.remove(text(given, "as"));
    Ok(Value::Null)
}
