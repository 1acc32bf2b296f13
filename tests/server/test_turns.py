"""Requests about very many things leave the loop to others now and then, and have the same answers."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio

from ottla.server import exchange, turns
from ottla.server.context import RequestContext
from ottla.server.parked import Parked
from ottla.server.registry import Registration
from ottla.wire.errors import TooManyElements
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.schema import decode_bounded, encode
from tests.server.test_dispatch import FRAME, answered, dispatcher, outbox_and_peer


async def test_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two things that take long, another task runs."""
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)
    seen: list[str] = []

    async def other() -> None:
        for _ in range(3):
            seen.append("other")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        doubled = await turns.map_in_turns(lambda number: seen.append("ours") or 2 * number, range(3))
    assert doubled == [0, 2, 4]
    assert seen != ["ours"] * 3 + ["other"] * 3
    assert sorted(seen) == ["other"] * 3 + ["ours"] * 3


async def test_many_elements_are_decoded_and_encoded_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit for one turn; below it the loop's own thread does it. The answers are the same."""
    names: dict[str, list[bool]] = {"decode": [], "encode": []}
    here = threading.current_thread()
    decode, add_response = Registration.decode, Registration.encode

    def noted_decode(self: Registration, *arguments: Any) -> Any:
        names["decode"].append(threading.current_thread() is here)
        return decode(self, *arguments)

    def noted_encode(self: Registration, *arguments: Any) -> None:
        names["encode"].append(threading.current_thread() is here)
        add_response(self, *arguments)

    monkeypatch.setattr(Registration, "decode", noted_decode)
    monkeypatch.setattr(Registration, "encode", noted_encode)
    topics = [MetadataRequestTopic(name=f"t{number}") for number in range(10)]
    frame = FRAME[:-4] + encode(MetadataRequest(topics=topics), 1)
    answers = []

    def handle(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
        assert request.topics == topics
        return MetadataResponse(controller_id=7)

    for limit, expected in ((10, ([True], [True])), (9, ([True, False], [False]))):
        monkeypatch.setattr(exchange, "QUICK_ELEMENTS", limit)
        with outbox_and_peer() as (outbox, peer):
            await answered(dispatcher(handle).answer(memoryview(frame), outbox))
            await outbox.flush()
            answers.append(peer.recv(1000))
        assert (names["decode"], names["encode"]) == expected
        names["decode"].clear()
        names["encode"].clear()
    assert answers[0] == answers[1]


class Waiting(Parked):
    """Has its answer when the time is up."""

    def watch(self, wake: Callable[[], None]) -> None:
        pass

    def close(self) -> None:
        pass

    def answer(self, *, time_is_up: bool) -> MetadataResponse | None:
        return MetadataResponse(controller_id=7) if time_is_up else None


async def test_a_request_with_many_elements_can_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Fetch may name many partitions that it forgets, and wait for the few that are left."""
    monkeypatch.setattr(exchange, "QUICK_ELEMENTS", 1)
    topics = [MetadataRequestTopic(name=f"t{number}") for number in range(10)]
    frame = FRAME[:-4] + encode(MetadataRequest(topics=topics), 1)
    with outbox_and_peer() as (outbox, peer):
        waiting = dispatcher(lambda context, request: Waiting(0.01))
        await answered(waiting.answer(memoryview(frame), outbox))
        await outbox.flush()
        assert encode(MetadataResponse(controller_id=7), 1) in peer.recv(1000)


async def test_each_thread_counts_its_own_elements() -> None:
    """A message that is decoded in a thread meanwhile takes nothing from the budget of another."""
    data = memoryview(encode(MetadataRequest(topics=[MetadataRequestTopic(name="t")] * 50), 1))
    with pytest.raises(TooManyElements):
        decode_bounded(MetadataRequest, 1, data, 0, 49)
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(trio.to_thread.run_sync, decode_bounded, MetadataRequest, 1, data, 0, 50)
    assert len(decode_bounded(MetadataRequest, 1, data, 0, 50).topics or ()) == 50
