"""A regular expression that was matched against the topics."""

from typing import NamedTuple


class ResolvedRegex(NamedTuple):
    """The topics that it matched, in which version of the metadata, and when."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int
