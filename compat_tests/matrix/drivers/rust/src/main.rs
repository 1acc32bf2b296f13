//! The driver around rust-rdkafka: one JSON object a line on standard input, one answer a line on standard output.

mod answers;
mod configs;
mod groups;
mod library;
mod members;
mod records;
mod topics;
mod transactions;

use std::io::{self, BufRead, Write};

use serde_json::{json, Value};

use crate::answers::{Answer, Failure, Names};
use crate::library::Driver;

fn answer(driver: &mut Driver, name: &str, given: &Value) -> Answer {
    match name {
        "version" => library::version(),
        "metadata" => topics::metadata(driver, given),
        "create_topics" => topics::create_topics(driver, given),
        "delete_topics" => topics::delete_topics(driver, given),
        "create_partitions" => topics::create_partitions(driver, given),
        "delete_records" => topics::delete_records(driver, given),
        "list_offsets" => topics::list_offsets(driver, given),
        "describe_configs" => configs::describe_configs(driver, given),
        "alter_configs" => configs::alter_configs(driver, given),
        "produce" => records::produce(driver, given),
        "fetch" => records::fetch(driver, given),
        "join" => members::join(driver, given),
        "poll" => members::poll(driver, given),
        "commit" => members::commit(driver, given),
        "leave" => members::leave(driver, given),
        "list_groups" => groups::list_groups(driver),
        "describe_group" => groups::describe_group(driver, given),
        "delete_groups" => groups::delete_groups(driver, given),
        "committed" => groups::committed(driver, given),
        "alter_group_offsets" => groups::alter_group_offsets(driver, given),
        "txn_init" => transactions::init(driver, given),
        "txn_begin" => transactions::begin(driver, given),
        "txn_send" => transactions::send(driver, given),
        "txn_offsets" => transactions::offsets(driver, given),
        "txn_commit" => transactions::commit(driver, given),
        "txn_abort" => transactions::abort(driver, given),
        "txn_close" => transactions::close(driver, given),
        other => Err(Failure::Unsupported(format!("the library has no call for {other}"))),
    }
}

fn main() -> io::Result<()> {
    let bootstrap = std::env::args().nth(1).expect("HOST:PORT");
    let names = Names::handed_over();
    let mut driver = Driver::new(&bootstrap, names.clone());
    for line in io::stdin().lock().lines() {
        let call: Value = serde_json::from_str(&line?)?;
        let name = call["call"].as_str().unwrap_or_default().to_owned();
        let told = match answer(&mut driver, &name, &call) {
            Ok(result) => json!({ "ok": result }),
            Err(failure) => failure.told(&names),
        };
        let mut output = io::stdout().lock();
        writeln!(output, "{told}")?;
        output.flush()?;
    }
    Ok(())
}
