"""The topics the broker keeps for itself. Clients see them marked as internal and may not produce to them."""

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"

INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})


def is_internal_topic(name: str) -> bool:
    """Whether a topic is one of the broker's own."""
    return name in INTERNAL_TOPICS
