//! Topics, the cluster, and offsets of partitions.

use futures_executor::block_on;
use rdkafka::admin::{NewPartitions, NewTopic, TopicReplication, TopicResult};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::MetadataTopic;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Map, Value};

use crate::answers::{number, words, Answer, Failure, Names};
use crate::library::{add_partitions, int32, options, text, Driver, PATIENCE};

fn described(topic: &MetadataTopic, names: &Names) -> Value {
    let error = topic.error().map(|code| names.of(number(RDKafkaErrorCode::from(code))).to_owned());
    let partitions: Vec<Value> = topic
        .partitions()
        .iter()
        .map(|each| {
            json!({ "partition": each.id(), "leader": each.leader(), "replicas": each.replicas(), "isr": each.isr() })
        })
        .collect();
    json!({ "error": error, "partitions": partitions })
}

/// A consumer asks, since an admin client is a producer inside and would create topics.
pub fn metadata(driver: &mut Driver, given: &Value) -> Answer {
    let consumer = driver.consumer("unused", &[])?;
    let mut topics = Map::new();
    let asked: Vec<Option<&str>> = match &given["topics"] {
        Value::Null => vec![None],
        list => words(list).into_iter().map(Some).collect(),
    };
    let mut brokers = Vec::new();
    for topic in asked {
        let found = consumer.fetch_metadata(topic, PATIENCE)?;
        for each in found.topics() {
            topics.insert(each.name().to_owned(), described(each, &driver.names));
        }
        brokers = found
            .brokers()
            .iter()
            .map(|each| json!({ "id": each.id(), "host": each.host(), "port": each.port() }))
            .collect();
    }
    let cluster_id = consumer.client().fetch_cluster_id(PATIENCE);
    Ok(json!({ "cluster_id": cluster_id, "controller": null, "brokers": brokers, "topics": topics }))
}

pub fn outcomes(results: Vec<TopicResult>, names: &Names) -> Answer {
    let told = results.into_iter().map(|each| match each {
        Ok(name) => (name, Value::Null),
        Err((name, code)) => (name, json!(names.of(number(code)))),
    });
    Ok(Value::Object(told.collect()))
}

pub fn create_topics(driver: &mut Driver, given: &Value) -> Answer {
    let wanted: Vec<NewTopic> = given["topics"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|each| {
            let replication = TopicReplication::Fixed(int32(&each["replication"]));
            let mut topic = NewTopic::new(text(each, "name"), int32(&each["partitions"]), replication);
            for (name, value) in each["configs"].as_object().into_iter().flatten() {
                topic = topic.set(name, value.as_str().unwrap_or_default());
            }
            topic
        })
        .collect();
    let options = options().validate_only(given["validate_only"].as_bool().unwrap_or_default());
    let results = block_on(driver.admin()?.create_topics(&wanted, &options))?;
    outcomes(results, &driver.names)
}

pub fn delete_topics(driver: &mut Driver, given: &Value) -> Answer {
    let results = block_on(driver.admin()?.delete_topics(&words(&given["topics"]), &options()))?;
    outcomes(results, &driver.names)
}

pub fn create_partitions(driver: &mut Driver, given: &Value) -> Answer {
    let wanted: Vec<NewPartitions> = given["topics"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, total)| NewPartitions::new(name, int32(total) as usize))
        .collect();
    let results = block_on(driver.admin()?.create_partitions(&wanted, &options()))?;
    outcomes(results, &driver.names)
}

pub fn delete_records(driver: &mut Driver, given: &Value) -> Answer {
    let mut wanted = TopicPartitionList::new();
    add_partitions(&mut wanted, text(given, "topic"), &given["before"])?;
    let found = block_on(driver.admin()?.delete_records(&wanted, &options()))?;
    let told = found.elements().into_iter().map(|each| {
        let result = match each.error() {
            Ok(()) => json!(each.offset().to_raw()),
            Err(error) => json!(driver.names.of_error(&error)),
        };
        (each.partition().to_string(), result)
    });
    Ok(Value::Object(told.collect()))
}

pub fn list_offsets(driver: &mut Driver, given: &Value) -> Answer {
    let (topic, partition) = (text(given, "topic"), int32(&given["partition"]));
    let consumer = driver.consumer("unused", &[])?;
    let offset = match &given["at"] {
        Value::String(at) if at == "earliest" => consumer.fetch_watermarks(topic, partition, PATIENCE)?.0,
        Value::String(at) if at == "latest" => consumer.fetch_watermarks(topic, partition, PATIENCE)?.1,
        Value::String(at) => return Err(Failure::Unsupported(format!("no offsets at {at}"))),
        at => offset_at(&consumer, topic, partition, at.as_i64().unwrap_or_default())?,
    };
    Ok(json!({ "offset": offset, "timestamp": -1 }))
}

fn offset_at(consumer: &BaseConsumer, topic: &str, partition: i32, time_ms: i64) -> Result<i64, KafkaError> {
    let mut asked = TopicPartitionList::new();
    asked.add_partition_offset(topic, partition, Offset::Offset(time_ms))?;
    let found = consumer.offsets_for_times(asked, PATIENCE)?;
    let elements = found.elements();
    elements[0].error()?;
    // Where nothing is that late, librdkafka says "the end", whose number is -1.
    Ok(elements[0].offset().to_raw().unwrap_or(-1))
}
