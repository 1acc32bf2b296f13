"""Differences that are known and why they are there; the page shows the reason beside the failure.

A known difference stays a failure: the entry only spares the reader the search.
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


KNOWN: tuple[Known, ...] = (
    Known(
        "configs: which configs of a topic are defaults",
        "Kafka 4.1 and newer switch eligible leader replicas (KIP-966) on in new directories and set"
        " min.insync.replicas for the whole cluster with it; Ottla, being one broker, does so only in directories"
        " that a Kafka has made. The value is the same.",
    ),
)
