"""The topics and tables of the pipeline, and how the topics are made."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

ACTIVITY = "activity"
USERS = "users"
DEAD_LETTERS = "activity.dead-letter"
CLEAN = "activity.clean"
PAGES = "activity.pages-per-minute"
EVENTS_TABLE = "tables/events"
SESSIONS_TABLE = "tables/sessions"
CLEAN_KEY = ("event_id",)
PAGES_KEY = ("start", "page", "country")

_COMPACTED = {"cleanup.policy": "compact"}
# Results carry keys, and a result that is written again has the same key: compaction leaves one of each.
_TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    ACTIVITY: (4, {}),
    USERS: (2, _COMPACTED),
    DEAD_LETTERS: (1, _COMPACTED),
    CLEAN: (4, _COMPACTED),
    PAGES: (2, _COMPACTED),
}


def create_topics(bootstrap: str) -> None:
    """Make every topic. Raises KafkaException when one is there already: a run starts with none of its own."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wanted = [
        NewTopic(name, num_partitions=partitions, replication_factor=-1, config=config)
        for name, (partitions, config) in _TOPICS.items()
    ]
    for made in admin.create_topics(wanted).values():
        made.result(timeout=30)
