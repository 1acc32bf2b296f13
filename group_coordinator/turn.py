"""One turn of the coordinator: what an event may look at, and the effects it collects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.group_coordinator.effects import Append, CancelTimer, Effect, Reply, SetTimer, TimerKey
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.settings import GroupSettings
from ottla.wire.schema import Message


class Turn:
    """The time, the settings, a source of ids, and the effects so far."""

    __slots__ = ("effects", "new_id", "now_ms", "settings")

    def __init__(self, now_ms: int, settings: GroupSettings, new_id: Callable[[], str]) -> None:
        self.now_ms = now_ms
        self.settings = settings
        self.new_id = new_id
        self.effects: list[Effect] = []

    def append(self, records: Sequence[CoordinatorRecord]) -> None:
        if records:
            self.effects.append(Append(tuple(records)))

    def reply(self, waiter: int, response: Message) -> None:
        self.effects.append(Reply(waiter, response))

    def set_timer(self, key: TimerKey, delay_ms: int) -> None:
        self.effects.append(SetTimer(key, self.now_ms + delay_ms))

    def cancel_timer(self, key: TimerKey) -> None:
        self.effects.append(CancelTimer(key))
