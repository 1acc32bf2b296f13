"""Judges what clients saw of a broker or a cluster: a history of operations, and rules that no history may break.

`python -m compat_tests.history FILE ...` reads histories and prints what is wrong with them. A history is JSON lines
in any order, over as many files as there were writers. Each line tells that a process (one
client, single-threaded, with a name no other has; a client that is started again is another process) began or
ended an operation:

    {"process": "a", "op": 3, "time": 17, "type": "invoke", "transaction": "id", "steps": [["send", "t-0", "x", null]]}
    {"process": "a", "op": 3, "time": 21, "type": "ok", "steps": [["send", "t-0", "x", 5]]}

- `time` is in nanoseconds of a clock that all processes share.
- `type` is `invoke`, or how it ended: `ok`, `fail` (it certainly did not happen) or `info` (nobody knows). An
  operation that never ended counts as `info`: the process was killed, or may be waiting still.
- `transaction` is the transactional id, for an operation that is a transaction: all of its steps happen or none.
- `isolation` is `read_committed` unless it says `read_uncommitted`.
- `final` marks polls after the last write, when everything is mended: what was not read then is not there.
- `steps` of the ending, where given, take the place of those of the beginning.

Steps, where a key is `TOPIC-PARTITION`, and an offset may be null if nobody told it:

    ["send", key, value, offset]              values are unique in a topic, but for one that is sent again
    ["poll", key, [[offset, value], ...]]     in the order in which the records came
    ["assign", [key, ...]]                    positions of these keys start anew: a seek, too
    ["subscribe", [topic, ...]]               from now on a group may move the process's positions
    ["commit", group, key, offset]            alone, or in a transaction
    ["committed", group, key, offset]         what the group has, null if nothing
    ["bounds", key, log_start_offset, last_stable_offset, high_watermark]
    ["init", transactional_id]                from the answer on, every older producer with that id is fenced

The rules are those of Jepsen's workload for Kafka, and some for what Kafka promises besides; `rules/` has them, a
function each.
"""
