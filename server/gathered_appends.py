"""Batches of many clients that have sent something at the same time, written together.

A write of the hundred bytes that a record takes costs nearly what a write of kilobytes does, and so does all that is
done around it. So while several clients are served in one pass (see ready_clients), small batches outside of
transactions are only gathered. When the pass has ended, each partition gets its own in one write, and then every
request its answer, in the order in which they came. If a client asks for anything else in the same pass, what was
gathered goes first: to each of them it is as if its requests had been answered when they came.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ottla.log_store.appends import AppendResult
from ottla.log_store.batch_run import BatchHead, BatchRun
from ottla.wire.api_keys import ApiKey
from ottla.wire.errors import KafkaError
from ottla.wire.headers import encode_response_header
from ottla.wire.messages.produce import ProduceResponse, TopicProduceResponse
from ottla.wire.records.header import BatchView
from ottla.wire.schema import encode_chunks

if TYPE_CHECKING:
    from ottla.server.output import Outbox
    from ottla.server.partition import Partition
    from ottla.server.ready_clients import ReadyClients
    from ottla.wire.chunks import Chunk

log = logging.getLogger("ottla.server")

_MOST_BYTES = 256 * 1024
# That many are written in about a millisecond: together, and one by one, as they are when that is not possible.
_MANY_REQUESTS, _FEW_REQUESTS = 256, 32

Topic = str | bytes  # its name, or its id in requests that name it by that
# The partition that is meant, where the answer goes, and version, correlation id, topic and index of a request.
Request = tuple["Partition", "Outbox", int, int, Topic, int]
# A batch that is the only one for its partition so far, as most of very many are.
Single = tuple[bytearray, BatchHead]
# What became of a batch: the first offset if there is nothing else to say of it, or why it was not appended.
Result = int | AppendResult | Exception


class GatheredAppends:
    """What the clients of one pass want to append."""

    def __init__(
        self,
        clients: ReadyClients,
        now_ms: Callable[[], int],
        answer: Callable[[int, int, Topic, int, int, int, int], bytes],
    ) -> None:
        """`answer` makes one of version, correlation id, topic, partition, first offset, time and log start."""
        self._clients = clients
        self._now_ms = now_ms
        self._answer = answer
        self._runs: dict[Partition, BatchRun | Single] = {}
        self._requests: list[Request] = []
        self._bytes = 0
        self._most_requests = _MANY_REQUESTS

    def is_open(self) -> bool:
        """Whether it pays: others are served in this pass, too."""
        return self._clients.is_crowded

    def add(self, batch: memoryview, head: BatchHead, request: Request) -> None:
        """Take a batch, and whom to answer when it is appended."""
        partition, outbox, _, _, _, _ = request
        requests = self._requests
        if not requests:
            self._clients.call_at_end(self._finish)
        requests.append(request)
        run = self._runs.get(partition)
        if run is None:
            self._runs[partition] = (bytearray(batch), head)
        else:
            if isinstance(run, tuple):
                single, run = run, BatchRun()
                run.add(*single)
                self._runs[partition] = run
            run.add(batch, head)
        outbox.settle = self.settle
        self._bytes += len(batch)
        if self._bytes > _MOST_BYTES or len(requests) >= self._most_requests:
            self.settle()

    def _finish(self) -> None:
        self.settle()
        self._clients.call_first()  # who waits for records, before their producers

    def settle(self) -> None:
        """Append what was gathered, and put the answers into their outboxes."""
        if not self._requests:
            return
        requests, self._requests = self._requests, []
        runs, self._runs = self._runs, {}
        self._bytes = 0
        now_ms = self._now_ms()
        self._most_requests = _MANY_REQUESTS
        of_runs: dict[Partition, Iterator[Result]] = {}
        for request in requests:
            partition, outbox, _, _, _, _ = request
            run = runs[partition]
            if isinstance(run, tuple):
                result = self._append_single(partition, *run, now_ms)
            else:
                results = of_runs.get(partition)
                if results is None:
                    results = of_runs[partition] = self._append(partition, run, now_ms)
                result = next(results)
            outbox.settle = None
            if outbox.failure is None:
                try:
                    self._add_answer(request, result)
                except Exception as error:  # noqa: BLE001 - it is told where the connection ends
                    outbox.failure = error

    def _append_single(self, partition: Partition, data: bytearray, head: BatchHead, now_ms: int) -> Result:
        """What became of the only batch for a partition."""
        try:
            offset = partition.append_plain(data, head, now_ms)
        except KafkaError as error:
            return error.alone()
        except Exception as error:  # noqa: BLE001
            return error
        if offset is not None:
            return offset
        self._most_requests = _FEW_REQUESTS  # the next ones are likely to be of the same kind
        return _append_one(partition, BatchView(memoryview(data)), now_ms)

    def _append(self, partition: Partition, run: BatchRun, now_ms: int) -> Iterator[Result]:
        """What became of each batch of the run."""
        refused: list[Result] = []
        try:
            offsets = partition.append_run(run, now_ms)
            if offsets is not None:
                return iter(offsets)
        except KafkaError as error:  # the first has met it; the others meet what it has left
            refused.append(error.alone())
        except Exception as error:  # noqa: BLE001
            return iter([error] * len(run.heads))
        self._most_requests = _FEW_REQUESTS  # the next ones are likely to be of the same kind
        rest = islice(run.batches(), len(refused), None)
        return iter(refused + [_append_one(partition, batch, now_ms) for batch in rest])

    def _add_answer(self, request: Request, result: Result) -> None:
        partition, outbox, version, correlation_id, topic, index = request
        if isinstance(result, int):
            base_offset, append_time_ms, start_offset = result, -1, partition.log.log_start_offset
        elif isinstance(result, AppendResult):
            base_offset, _, append_time_ms, start_offset, _, _ = result
        elif isinstance(result, KafkaError):
            outbox.add_frame(_refusal(version, correlation_id, topic, index, result))
            return
        else:
            raise _end_of_connection(partition, result)
        outbox.add_bytes(
            self._answer(version, correlation_id, topic, index, base_offset, append_time_ms, start_offset)
        )


def _append_one(partition: Partition, batch: BatchView, now_ms: int) -> Result:
    try:
        return partition.append_prepared(batch, now_ms)
    except KafkaError as error:
        return error.alone()
    except Exception as error:  # noqa: BLE001
        return error


def _end_of_connection(partition: Partition, error: Exception) -> Exception:
    """A bug of ours closes the connection, so that the client tries again instead of reading a made-up answer."""
    from ottla.server.dispatch import CloseConnection  # which needs this module before

    log.error("append failed partition=%s-%d", partition.topic, partition.index, exc_info=error)
    return CloseConnection(f"internal error in an append to {partition.topic}-{partition.index}")


def _refusal(version: int, correlation_id: int, topic: Topic, index: int, error: KafkaError) -> list[Chunk]:
    """The answer that a request gets when its batch was not appended."""
    from ottla.server.handlers.produce import refused  # which needs this module before

    named = {"name": topic} if isinstance(topic, str) else {"topic_id": topic}
    answers = [TopicProduceResponse(**named, partition_responses=[refused(index, error)])]
    header = encode_response_header(ApiKey.PRODUCE, version, correlation_id)
    return [header, *encode_chunks(ProduceResponse(responses=answers), version)]
