"""Messages with very many elements in their arrays, nested ones included: how many they are, and letting go of them.

How many they are is what encoding will cost, before it is begun. Arrays of numbers are left out: however long they are,
they are written by one call.

To free a message with all that is in it is one step of the interpreter, in which no other thread has a turn, however
long it takes; to free its elements one by one are many.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

from ottla.wire.fields import FieldSpec, specs_of

# `(message, limit) -> elements`; it stops counting soon after the limit.
Counter = Callable[[Any, int], int]


@cache
def element_counter(cls: Any) -> Counter:
    """Counts the elements of a message or structure."""
    specs = specs_of(cls)
    arrays = [(attrgetter(spec.name), _inner(spec)) for spec in specs if _is_counted(spec)]
    structures = [
        (attrgetter(spec.name), element_counter(spec.structure))
        for spec in specs
        if not spec.is_array and spec.structure is not None and _has_elements(spec.structure)
    ]

    def count(obj: Any, limit: int) -> int:
        total = 0
        for get, count_inner in structures:
            structure = get(obj)
            if structure is not None:
                total += count_inner(structure, limit - total)
        for get, count_element in arrays:
            elements = get(obj)
            if not elements:
                continue
            total += len(elements)
            if count_element is not None:
                for element in elements:
                    if total > limit:
                        return total
                    total += count_element(element, limit - total)
        return total

    return count


@cache
def element_releaser(cls: Any) -> Callable[[Any], None]:
    """Empties the arrays of a message, and those in their elements, one element after the other."""
    arrays = [
        (attrgetter(spec.name), element_releaser(spec.structure) if _has_elements(spec.structure) else None)
        for spec in specs_of(cls)
        if _is_counted(spec)
    ]

    def release(obj: Any) -> None:
        for get, release_inner in arrays:
            elements = get(obj)
            while elements:
                element = elements.pop()
                if release_inner is not None:
                    release_inner(element)

    return release


def _is_counted(spec: FieldSpec) -> bool:
    return spec.is_array and (spec.structure is not None or (spec.kind is not None and not spec.kind.code))


def _has_elements(structure: Any) -> bool:
    """Whether there can be any in a structure, or in those that it holds."""
    return structure is not None and any(
        _is_counted(spec) or _has_elements(spec.structure) for spec in specs_of(structure)
    )


def _inner(spec: FieldSpec) -> Counter | None:
    """Counts what is in an element, if there can be anything."""
    return element_counter(spec.structure) if _has_elements(spec.structure) else None
