//! What calls answer: results, and errors by Kafka's names of the codes; and bytes as JSON has them.

use std::collections::HashMap;
use std::rc::Rc;

use base64::{engine::general_purpose::STANDARD, Engine};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use serde_json::{json, Value};

pub type Answer = Result<Value, Failure>;

pub const LOCAL: &str = "LOCAL";
const OFFSET_OUT_OF_RANGE: i32 = 1;

/// Why a call has no result.
pub enum Failure {
    Unsupported(String),
    /// A code of the protocol, or a negative one of librdkafka's own.
    Refused(i32, String),
    Local(String),
}

/// Kafka's names of its error codes; whoever starts the driver hands them over, so that they stand in one place only.
#[derive(Clone)]
pub struct Names(Rc<HashMap<String, String>>);

impl Names {
    pub fn handed_over() -> Names {
        let text = std::env::var("KAFKA_ERROR_NAMES").unwrap_or_else(|_| "{}".to_owned());
        Names(Rc::new(serde_json::from_str(&text).expect("KAFKA_ERROR_NAMES is an object of names")))
    }

    pub fn of(&self, code: i32) -> &str {
        self.0.get(&code.to_string()).map_or(LOCAL, String::as_str)
    }

    pub fn of_error(&self, error: &KafkaError) -> &str {
        error.rdkafka_error_code().map_or(LOCAL, |code| self.of(number(code)))
    }
}

/// The protocol's code, where librdkafka has one of its own that stands for exactly one answer of the broker.
pub fn number(code: RDKafkaErrorCode) -> i32 {
    match code {
        RDKafkaErrorCode::AutoOffsetReset => OFFSET_OUT_OF_RANGE,
        // -1 is what the protocol says for an unknown error; librdkafka's "unknown" is the same number.
        other => other as i32,
    }
}

impl Failure {
    pub fn told(&self, names: &Names) -> Value {
        match self {
            Failure::Unsupported(why) => json!({ "unsupported": why }),
            Failure::Refused(code, message) => json!({ "error": names.of(*code), "message": message }),
            Failure::Local(message) => json!({ "error": LOCAL, "message": message }),
        }
    }
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Failure {
        match error.rdkafka_error_code() {
            Some(code) => Failure::Refused(number(code), error.to_string()),
            None => Failure::Local(error.to_string()),
        }
    }
}

impl From<RDKafkaErrorCode> for Failure {
    fn from(code: RDKafkaErrorCode) -> Failure {
        Failure::Refused(number(code), code.to_string())
    }
}

pub fn encoded(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| Value::String(STANDARD.encode(bytes)))
}

pub fn decoded(text: &Value) -> Option<Vec<u8>> {
    text.as_str().map(|text| STANDARD.decode(text).expect("base64"))
}

/// The words of a list.
pub fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}
