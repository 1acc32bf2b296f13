"""What a check found: one line with the file, the place in it and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be. `offset` is a record's, `position` that of a byte in the file."""

    path: str
    problem: str
    offset: int | None = None
    position: int | None = None

    def __str__(self) -> str:
        place = [
            f"{name} {number}"
            for name, number in (("offset", self.offset), ("byte", self.position))
            if number is not None
        ]
        return ": ".join([self.path, *([", ".join(place)] if place else []), self.problem])


Findings = Iterator[Finding]
