"""Which topic names Kafka accepts, and which two of them its metrics could not tell apart.

A name has 1 to 249 of the characters a-z A-Z 0-9 . _ - and is not `.` or `..`. In metric names `.` becomes
`_`, so names that differ only in these two collide and Kafka refuses the second one.
"""

import re

MAX_NAME_LENGTH = 249
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")


def topic_name_error(name: str) -> str | None:
    """Why Kafka refuses this topic name, in its words; None for a good one."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in {".", ".."}:
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than "
            f"the max allowed length {MAX_NAME_LENGTH}"
        )
    if not _LEGAL.match(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def is_internal(name: str) -> bool:
    """Is it a topic that the broker keeps for itself?"""
    return name in INTERNAL_TOPICS


def has_collision_characters(name: str) -> bool:
    """Could the name collide with another one in metric names?"""
    return "_" in name or "." in name


def unify_collision_characters(name: str) -> str:
    """The name as metric names show it: equal for names that collide."""
    return name.replace(".", "_")
