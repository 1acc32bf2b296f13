//! Produce and fetch, without a group: a producer or a consumer for each call.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use rdkafka::client::ClientContext;
use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Value};

use crate::answers::{decoded, encoded, Answer, Failure, LOCAL};
use crate::library::{int32, text, Driver, PATIENCE, PATIENCE_MS};

/// What became of a record: where it is, or why not.
pub type Report = Result<(i32, i64), KafkaError>;

/// Keeps the reports under the numbers that records have as their opaques.
#[derive(Clone, Default)]
pub struct Reports(Arc<Mutex<Vec<Option<Report>>>>);

pub type ReportingProducer = BaseProducer<Reports>;

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<usize>;

    fn delivery(&self, result: &DeliveryResult<'_>, number: Box<usize>) {
        let report = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.clone()),
        };
        self.0.lock().expect("no one panics with it")[*number] = Some(report);
    }
}

/// A producer that gives up in time.
pub fn producer(driver: &Driver, own: &[(&str, &str)]) -> KafkaResult<ReportingProducer> {
    let mut settings = driver.settings(&[("linger.ms", "2"), ("message.timeout.ms", &PATIENCE_MS.to_string())]);
    for (name, value) in own {
        settings.set(*name, *value);
    }
    settings.create_with_context(Reports::default())
}

/// Hand records to the library at once and wait for all; what became of each, in their order.
pub fn delivered(producer: &ReportingProducer, topic: &str, records: &[Value]) -> Vec<Option<Report>> {
    let reports = producer.context().clone();
    *reports.0.lock().expect("no one panics with it") = records.iter().map(|_| None).collect();
    for (number, record) in records.iter().enumerate() {
        let (key, value) = (decoded(&record["key"]), decoded(&record["value"]));
        let wanted: BaseRecord<'_, [u8], [u8], Box<usize>> = BaseRecord {
            topic,
            partition: record["partition"].as_i64().map(|number| number as i32),
            payload: value.as_deref(),
            key: key.as_deref(),
            timestamp: record["timestamp"].as_i64(),
            headers: headers_of(&record["headers"]),
            delivery_opaque: Box::new(number),
        };
        if let Err((error, _)) = producer.send(wanted) {
            reports.0.lock().expect("no one panics with it")[number] = Some(Err(error)); // too large, for one
        }
    }
    let _ = producer.flush(PATIENCE); // whoever has no report then is answered with an error
    let found = reports.0.lock().expect("no one panics with it").drain(..).collect();
    found
}

fn headers_of(pairs: &Value) -> Option<OwnedHeaders> {
    let pairs = pairs.as_array().filter(|pairs| !pairs.is_empty())?;
    Some(pairs.iter().fold(OwnedHeaders::new(), |headers, pair| {
        let value = decoded(&pair[1]);
        headers.insert(Header { key: pair[0].as_str().unwrap_or_default(), value: value.as_ref() })
    }))
}

pub fn produce(driver: &mut Driver, given: &Value) -> Answer {
    let acks = given["acks"].as_i64().unwrap_or(-1).to_string();
    let limit = given["max_request_bytes"].as_i64().map(|bytes| bytes.to_string());
    let idempotent = given["idempotent"].as_bool().unwrap_or_default().to_string();
    let codec = given["codec"].as_str().unwrap_or("none");
    let mut own = vec![("acks", &*acks), ("compression.type", codec), ("enable.idempotence", &*idempotent)];
    if let Some(bytes) = &limit {
        own.push(("message.max.bytes", bytes));
    }
    let producer = producer(driver, &own)?;
    let records = given["records"].as_array().cloned().unwrap_or_default();
    let told = delivered(&producer, text(given, "topic"), &records).into_iter().map(|report| match report {
        Some(Ok((partition, offset))) => json!({ "partition": partition, "offset": offset.max(-1) }),
        Some(Err(error)) => json!({ "error": driver.names.of_error(&error) }),
        None => json!({ "error": LOCAL }),
    });
    Ok(Value::Array(told.collect()))
}

fn fetched(message: &BorrowedMessage<'_>) -> Value {
    let headers: Vec<Value> = message
        .headers()
        .into_iter()
        .flat_map(|headers| headers.iter())
        .map(|header| json!([header.key, encoded(header.value)]))
        .collect();
    json!({
        "offset": message.offset(),
        "key": encoded(message.key()),
        "value": encoded(message.payload()),
        "headers": headers,
        "timestamp": message.timestamp().to_millis().unwrap_or(-1),
    })
}

pub fn fetch(driver: &mut Driver, given: &Value) -> Answer {
    let count = given["count"].as_u64().map(|count| count as usize);
    let consumer = driver.consumer(
        "unused",
        &[
            ("auto.offset.reset", "error"),
            ("isolation.level", given["isolation"].as_str().unwrap_or("read_uncommitted")),
            ("enable.partition.eof", "true"),
            // It learns of the end from an empty answer, for which it would wait half a second each time.
            ("fetch.wait.max.ms", if count.is_none() { "20" } else { "500" }),
            ("fetch.message.max.bytes", "10000000"),
        ],
    )?;
    let mut assignment = TopicPartitionList::new();
    let offset = Offset::Offset(given["offset"].as_i64().unwrap_or_default());
    assignment.add_partition_offset(text(given, "topic"), int32(&given["partition"]), offset)?;
    consumer.assign(&assignment)?;
    let deadline = Instant::now() + PATIENCE;
    let mut found = Vec::new();
    while count.is_none_or(|count| found.len() < count) {
        match consumer.poll(deadline.saturating_duration_since(Instant::now())) {
            None => return Err(Failure::Local(format!("{} records came", found.len()))),
            Some(Ok(message)) => found.push(fetched(&message)),
            Some(Err(KafkaError::PartitionEOF(_))) if count.is_none() => break,
            Some(Err(KafkaError::PartitionEOF(_))) => continue,
            Some(Err(error)) => return Err(error.into()),
        }
    }
    Ok(Value::Array(found))
}
