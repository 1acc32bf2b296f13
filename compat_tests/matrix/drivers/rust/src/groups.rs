//! Groups from outside. The library has librdkafka's oldest call for them, which lists and describes in one and hands
//! assignments over as the bytes of the protocol.

use std::collections::BTreeMap;

use futures_executor::block_on;
use rdkafka::consumer::Consumer;
use rdkafka::groups::GroupMemberInfo;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Value};

use crate::answers::{words, Answer, Failure};
use crate::library::{int32, options, places, text, Driver, PATIENCE};
use crate::members::committed as commit_alone;
use crate::topics::outcomes;

/// Reads the big-endian fields of a member's assignment (ConsumerProtocolAssignment).
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = (self.0.get(..count)?, self.0.get(count..)?);
        self.0 = rest;
        Some(taken)
    }

    fn int16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }

    fn int32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn assignment(&mut self) -> Option<BTreeMap<String, Vec<i32>>> {
        let mut found = BTreeMap::new();
        self.int16()?; // the version; what later ones have is behind the topics
        for _ in 0..self.int32()? {
            let length = self.int16()?;
            let topic = String::from_utf8(self.bytes(length as usize)?.to_vec()).ok()?;
            let partitions = (0..self.int32()?).map(|_| self.int32()).collect::<Option<Vec<i32>>>()?;
            found.insert(topic, partitions);
        }
        Some(found)
    }
}

fn described(member: &GroupMemberInfo) -> Value {
    let assignment = member.assignment().and_then(|bytes| Fields(bytes).assignment()).unwrap_or_default();
    json!({ "client_id": member.client_id(), "instance_id": null, "assignment": assignment })
}

pub fn list_groups(driver: &mut Driver) -> Answer {
    let found = driver.consumer("unused", &[])?.fetch_group_list(None, PATIENCE)?;
    let told = found
        .groups()
        .iter()
        .map(|each| (each.name().to_owned(), json!({ "state": each.state(), "type": null })));
    Ok(Value::Object(told.collect()))
}

pub fn describe_group(driver: &mut Driver, given: &Value) -> Answer {
    let group = text(given, "group");
    let found = driver.consumer("unused", &[])?.fetch_group_list(Some(group), PATIENCE)?;
    let Some(each) = found.groups().iter().find(|each| each.name() == group) else {
        return Err(Failure::Unsupported("it describes only groups that are in its list".to_owned()));
    };
    if each.state() == "Dead" {
        return Err(Failure::Unsupported("it describes with the request for classic groups alone".to_owned()));
    }
    let members: Vec<Value> = each.members().iter().map(described).collect();
    Ok(json!({ "state": each.state(), "type": null, "protocol": each.protocol(), "members": members }))
}

pub fn delete_groups(driver: &mut Driver, given: &Value) -> Answer {
    let results = block_on(driver.admin()?.delete_groups(&words(&given["groups"]), &options()))?;
    outcomes(results, &driver.names)
}

pub fn committed(driver: &mut Driver, given: &Value) -> Answer {
    let consumer = driver.consumer(text(given, "group"), &[])?;
    let mut asked = TopicPartitionList::new();
    for partition in given["partitions"].as_array().into_iter().flatten() {
        asked.add_partition(text(given, "topic"), int32(partition));
    }
    let found = consumer.committed_offsets(asked, PATIENCE)?;
    let mut told = serde_json::Map::new();
    for each in found.elements() {
        each.error()?;
        let offset = match each.offset() {
            Offset::Offset(offset) => offset,
            _ => -1,
        };
        told.insert(each.partition().to_string(), json!(offset));
    }
    Ok(Value::Object(told))
}

/// The library has no call for it but a commit of one who has not joined, which is the same request.
pub fn alter_group_offsets(driver: &mut Driver, given: &Value) -> Answer {
    let consumer = driver.consumer(text(given, "group"), &[])?;
    commit_alone(&consumer, &places(&given["offsets"])?)
}
