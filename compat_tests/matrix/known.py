"""Differences that are known, and why they are there; the page tells them.

What fails for a known reason stays a failure: the entry only spares the reader the search. What the cases leave out of
the comparison, because it rightly differs, is said here as well.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """Why a case fails for a client; without a client, for all of them. `case` is how its name begins."""

    case: str
    reason: str
    client: str = ""

    def covers(self, client: str, case: str) -> bool:
        """Whether it is about this case of this client."""
        return case.startswith(self.case) and self.client in ("", client)


KNOWN: tuple[Known, ...] = ()

LEFT_OUT = (
    "New directories of Kafka 4.3 have the feature streams.version 1 in force. Groups of Kafka Streams' new protocol"
    " are not served by Ottla, so Streams applications use the classic one. All other features have the same levels.",
    "Ids, ports, times, cluster ids and the sizes of logs on disk are not compared, where each broker has its own.",
)
