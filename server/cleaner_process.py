"""The broker's end of the process that cleans logs (log_store/compaction/process.py)."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self

import trio

from ottla.log_store.compaction.job import Answer, CleanedGroup, CleaningJob, decode_answer, encode_job
from ottla.log_store.compaction.process import command

_PIECE_BYTES = 65536


class CleanerDied(Exception):
    """The process ended in the middle of a job."""


class CleanerProcess:
    """Started when there is something to clean, and ended when there has been nothing for a while, or with a job that
    did not come to its end. It is killed rather than asked to stop: all it writes are files that are thrown away unless
    it says they are ready."""

    def __init__(self) -> None:
        self._process: trio.Process | None = None
        self._unread = b""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.end()

    async def end(self) -> None:
        """Let go of the process and its memory."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    await stream.aclose()

    async def answers(self, job: CleaningJob) -> AsyncGenerator[Answer, None]:
        """Give it a job; yields what it says until the job is done."""
        process = self._process or await self._start()
        is_done = False
        try:
            await self._send(process, encode_job(job))
            while not is_done:
                answer = decode_answer(await self._line(process))
                is_done = not isinstance(answer, CleanedGroup)
                yield answer
        finally:
            if not is_done:  # whatever it still says belongs to this job
                await self.end()

    async def _send(self, process: trio.Process, job: bytes) -> None:
        assert process.stdin is not None
        try:
            await process.stdin.send_all(job)
        except trio.BrokenResourceError:
            raise CleanerDied("it takes no job") from None

    async def _start(self) -> trio.Process:
        self._unread = b""
        with trio.CancelScope(shield=True):  # or nobody would know of it to end it
            self._process = await trio.lowlevel.open_process(
                command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the broker
            )
        assert self._process is not None
        return self._process

    async def _line(self, process: trio.Process) -> bytes:
        assert process.stdout is not None
        while b"\n" not in self._unread:
            piece = await process.stdout.receive_some(_PIECE_BYTES)
            if not piece:
                raise CleanerDied(f"it ended with code {await process.wait()}")
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line
