//! Configs. The library has the old AlterConfigs alone, which replaces all that was set before: what is to stay is read
//! first and sent again, as its users do.

use std::thread::sleep;
use std::time::{Duration, Instant};

use futures_executor::block_on;
use rdkafka::admin::{AlterConfig, ConfigEntry, ConfigSource, ResourceSpecifier};
use serde_json::{json, Value};

use crate::answers::{words, Answer, Failure};
use crate::library::{options, text, Driver};

const SEEN_WITHIN: Duration = Duration::from_secs(2);

fn resource(given: &Value) -> Result<ResourceSpecifier<'_>, Failure> {
    let name = text(given, "name");
    match text(given, "kind") {
        "topic" => Ok(ResourceSpecifier::Topic(name)),
        "broker" => {
            let id = name.parse().map_err(|_| Failure::Local(format!("no id of a broker: {name}")))?;
            Ok(ResourceSpecifier::Broker(id))
        }
        other => Err(Failure::Unsupported(format!("no configs of a {other}"))),
    }
}

fn set_here(each: &&ConfigEntry) -> bool {
    matches!(each.source, ConfigSource::DynamicTopic | ConfigSource::DynamicBroker)
}

fn entries(driver: &mut Driver, given: &Value) -> Result<Vec<ConfigEntry>, Failure> {
    let asked = [resource(given)?];
    let found = block_on(driver.admin()?.describe_configs(&asked, &options()))?;
    let entries = found.into_iter().next().expect("one answer for one resource")?.entries;
    if entries.is_empty() {
        return Err(Failure::Unsupported("the library drops the error of a resource that it was to describe".to_owned()));
    }
    Ok(entries)
}

pub fn describe_configs(driver: &mut Driver, given: &Value) -> Answer {
    let told = entries(driver, given)?.into_iter().map(|each| {
        let entry = json!({
            "value": each.value,
            "default": each.is_default,
            "read_only": each.is_read_only,
            "sensitive": each.is_sensitive,
        });
        (each.name, entry)
    });
    Ok(Value::Object(told.collect()))
}

pub fn alter_configs(driver: &mut Driver, given: &Value) -> Answer {
    let before = entries(driver, given)?;
    let mut wanted = AlterConfig::new(resource(given)?);
    for each in before.iter().filter(set_here) {
        wanted = wanted.set(&each.name, each.value.as_deref().unwrap_or_default());
    }
    for (name, value) in given["set"].as_object().into_iter().flatten() {
        wanted = wanted.set(name, value.as_str().unwrap_or_default());
    }
    for name in words(&given["delete"]) {
        wanted.entries.remove(name);
    }
    for result in block_on(driver.admin()?.alter_configs(&[wanted], &options()))? {
        result.map_err(|(_, code)| Failure::from(code))?;
    }
    until_seen(driver, given)
}

/// The library drops the error of a resource that it was to alter, too: whether it was altered shows only afterwards.
fn until_seen(driver: &mut Driver, given: &Value) -> Answer {
    let deadline = Instant::now() + SEEN_WITHIN;
    while Instant::now() < deadline {
        let now = entries(driver, given)?;
        let value_of = |name: &str| now.iter().find(|each| each.name == name).and_then(|each| each.value.as_deref());
        let set = given["set"].as_object().into_iter().flatten().all(|(name, value)| value_of(name) == value.as_str());
        let here = |name: &str| now.iter().any(|each| each.name == name && set_here(&each));
        if set && !words(&given["delete"]).into_iter().any(here) {
            return Ok(Value::Null);
        }
        sleep(Duration::from_millis(50));
    }
    Err(Failure::Unsupported("the library drops the error of a resource that it was to alter".to_owned()))
}
