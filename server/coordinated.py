"""Which APIs are answered by which coordinator, so that its code is there before the first of its requests is handled.

To import a coordinator takes tens of milliseconds; a worker thread does it (see dispatch), and a client that comes
right after the start waits for it alone.
"""

from __future__ import annotations

from typing import Final

from ottla.wire.api_keys import ApiKey

GROUPS: Final = "ottla.server.groups.coordinator"
SHARE_GROUPS: Final = "ottla.server.share.coordinator"
TRANSACTIONS: Final = "ottla.server.transactions.coordinator"
REGULAR_EXPRESSIONS: Final = "re2"  # which few brokers ever need

_GROUPS = (
    "CONSUMER_GROUP_DESCRIBE CONSUMER_GROUP_HEARTBEAT DELETE_GROUPS DESCRIBE_GROUPS HEARTBEAT JOIN_GROUP LEAVE_GROUP "
    "LIST_GROUPS OFFSET_COMMIT OFFSET_DELETE OFFSET_FETCH SYNC_GROUP TXN_OFFSET_COMMIT"
)
_SHARE_GROUPS = (
    "ALTER_SHARE_GROUP_OFFSETS DELETE_GROUPS DELETE_SHARE_GROUP_OFFSETS DELETE_SHARE_GROUP_STATE "
    "DESCRIBE_SHARE_GROUP_OFFSETS INITIALIZE_SHARE_GROUP_STATE READ_SHARE_GROUP_STATE READ_SHARE_GROUP_STATE_SUMMARY "
    "SHARE_ACKNOWLEDGE SHARE_FETCH SHARE_GROUP_DESCRIBE SHARE_GROUP_HEARTBEAT WRITE_SHARE_GROUP_STATE"
)
_TRANSACTIONS = "ADD_OFFSETS_TO_TXN ADD_PARTITIONS_TO_TXN DESCRIBE_TRANSACTIONS END_TXN LIST_TRANSACTIONS"


def _modules() -> dict[ApiKey, tuple[str, ...]]:
    modules: dict[ApiKey, tuple[str, ...]] = {}
    for names, module in ((_GROUPS, GROUPS), (_SHARE_GROUPS, SHARE_GROUPS), (_TRANSACTIONS, TRANSACTIONS)):
        for name in names.split():
            modules[ApiKey[name]] = (*modules.get(ApiKey[name], ()), module)
    return modules


# Share groups are groups, too: whoever needs the one needs the other.
MODULES: Final = {key: (GROUPS, *modules) for key, modules in _modules().items()}
