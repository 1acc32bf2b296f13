//! Transactional producers.

use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::Producer;
use serde_json::{json, Value};

use crate::answers::{Answer, Failure};
use crate::library::{places, text, Driver, PATIENCE, PATIENCE_MS};
use crate::records::{delivered, producer};

const PRODUCER_FENCED: i32 = 90;

/// Librdkafka has a code of its own for a producer that another one has fenced.
fn fenced_or(error: KafkaError) -> Failure {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::Fenced) => Failure::Refused(PRODUCER_FENCED, error.to_string()),
        _ => error.into(),
    }
}

fn done(result: Result<(), KafkaError>) -> Answer {
    result.map(|()| Value::Null).map_err(fenced_or)
}

pub fn init(driver: &mut Driver, given: &Value) -> Answer {
    let timeout_ms = given["timeout_ms"].as_i64().unwrap_or(60_000);
    let (limit, patience) = (timeout_ms.to_string(), timeout_ms.min(PATIENCE_MS).to_string());
    let made = producer(
        driver,
        &[
            ("transactional.id", text(given, "id")),
            ("transaction.timeout.ms", &limit),
            // Neither a record nor a request may outlive the transaction.
            ("message.timeout.ms", &patience),
            ("socket.timeout.ms", &patience),
        ],
    )?;
    made.init_transactions(PATIENCE).map_err(fenced_or)?;
    driver.producers.insert(text(given, "as").to_owned(), made);
    Ok(Value::Null)
}

pub fn begin(driver: &mut Driver, given: &Value) -> Answer {
    done(driver.producer(given)?.begin_transaction())
}

pub fn send(driver: &mut Driver, given: &Value) -> Answer {
    let values = given["values"].as_array().into_iter().flatten();
    let records: Vec<Value> =
        values.map(|value| json!({ "partition": given["partition"], "value": value })).collect();
    let mut offsets = Vec::new();
    for report in delivered(driver.producer(given)?, text(given, "topic"), &records) {
        let report = report.ok_or_else(|| Failure::Local("a record has no report".to_owned()))?;
        offsets.push(report.map_err(fenced_or)?.1);
    }
    Ok(json!(offsets))
}

pub fn offsets(driver: &mut Driver, given: &Value) -> Answer {
    let wanted = places(&given["offsets"])?;
    let metadata = match given["member"].as_str() {
        Some(name) => {
            let member = driver.members.get(name);
            member.ok_or_else(|| Failure::Local(format!("no member is called {name}")))?.consumer.group_metadata()
        }
        None => driver.consumer(text(given, "group"), &[])?.group_metadata(),
    };
    let metadata = metadata.ok_or_else(|| Failure::Local("the consumer has no group".to_owned()))?;
    done(driver.producer(given)?.send_offsets_to_transaction(&wanted, &metadata, PATIENCE))
}

pub fn commit(driver: &mut Driver, given: &Value) -> Answer {
    done(driver.producer(given)?.commit_transaction(PATIENCE))
}

pub fn abort(driver: &mut Driver, given: &Value) -> Answer {
    done(driver.producer(given)?.abort_transaction(PATIENCE))
}

pub fn close(driver: &mut Driver, given: &Value) -> Answer {
    driver.producer(given)?;
    driver.producers.remove(text(given, "as"));
    Ok(Value::Null)
}
