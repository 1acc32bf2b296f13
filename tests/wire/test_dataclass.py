"""The light `dataclass` beside the standard one: the same classes made with both behave in the same way."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

from ottla.wire import dataclass as light

T = TypeVar("T")


def classes(made: Any, field: Any) -> dict[str, Any]:
    """The kinds of classes that there are in Ottla."""

    @made(frozen=True, slots=True)
    class Frozen:
        """Cannot be changed."""

        a: int
        b: str = "b"

        @property
        def double(self) -> int:
            return self.a * 2

    @made(slots=True)
    class Plain:
        """Can be changed."""

        a: int
        items: list[int] = field(default_factory=list)

    @made(slots=True, eq=False)
    class Identity:
        """Is only equal to itself."""

        a: int = 1

        def __repr__(self) -> str:
            return "own"

    @made(frozen=True, slots=True, order=True)
    class Ordered:
        """Has an order."""

        a: int
        b: int

    @made(frozen=True, slots=True, kw_only=True)
    class Named:
        """By name only."""

        a: int = 1
        b: int

    @made(frozen=True, slots=True)
    class Holder(Generic[T]):
        """Of something."""

        thing: T

    found = (Frozen, Plain, Identity, Ordered, Named, Holder)
    return {each.__name__: each for each in found}


LIGHT = classes(light.dataclass, light.field)
STANDARD = classes(dataclasses.dataclass, dataclasses.field)


def said(question: Callable[[dict[str, Any]], Any], kinds: dict[str, Any]) -> Any:
    try:
        return question(kinds)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is compared
        return type(error), str(error)


@pytest.mark.parametrize(
    "question",
    [
        lambda c: repr(c["Frozen"](1)),
        lambda c: repr(c["Frozen"](a=1, b="c")),
        lambda c: repr(c["Identity"]()),
        lambda c: c["Frozen"](2).double,
        lambda c: c["Frozen"](1) == c["Frozen"](1, "b"),
        lambda c: c["Frozen"](1) == c["Frozen"](2),
        lambda c: c["Frozen"](1) == (1, "b"),
        lambda c: c["Identity"]() == c["Identity"](),
        lambda c: hash(c["Frozen"](1)),
        lambda c: hash(c["Plain"](1)),
        lambda c: len({c["Identity"](), c["Identity"]()}),
        lambda c: c["Frozen"](),
        lambda c: c["Frozen"](1, 2, 3),
        lambda c: c["Frozen"](1, nothing=2),
        lambda c: c["Named"](1, 2),
        lambda c: repr(c["Named"](b=2)),
        lambda c: setattr(c["Frozen"](1), "a", 2),
        lambda c: delattr(c["Frozen"](1), "a"),
        lambda c: setattr(c["Plain"](1), "other", 2),
        lambda c: c["Plain"](1).items is c["Plain"](1).items,
        lambda c: c["Plain"](1, [2]) == c["Plain"](1, [2]),
        lambda c: c["Ordered"](1, 2) < c["Ordered"](1, 3),
        lambda c: c["Ordered"](1, 2) >= c["Ordered"](1, 3),
        lambda c: c["Ordered"](1, 2) < 3,
        lambda c: c["Frozen"](1) < c["Frozen"](2),
        lambda c: repr(sorted(c["Ordered"](a, 1) for a in (3, 1, 2))),
        lambda c: repr(dataclasses.replace(c["Frozen"](1), a=3)),
        lambda c: repr(dataclasses.replace(c["Frozen"](1), nothing=3)),
        lambda c: dataclasses.asdict(c["Plain"](1)),
        lambda c: [(each.name, each.type, each.kw_only) for each in dataclasses.fields(c["Named"])],
        lambda c: dataclasses.is_dataclass(c["Frozen"]),
        lambda c: c["Frozen"].__match_args__ + c["Named"].__match_args__,
        lambda c: (c["Frozen"].__slots__, c["Frozen"].__doc__, c["Frozen"].__name__, c["Frozen"].__module__),
        lambda c: hasattr(c["Frozen"], "__dict__") and hasattr(c["Frozen"](1), "__dict__"),
        lambda c: repr(copy.copy(c["Frozen"](1))),
        lambda c: repr(copy.deepcopy(c["Plain"](1, [2]))),
        lambda c: c["Holder"](5) == c["Holder"](5),
        lambda c: repr(type("Below", (c["Frozen"],), {})(1)),
    ],
)
def test_it_is_as_the_standard_one(question: Callable[[dict[str, Any]], Any]) -> None:
    """Whatever is asked, errors among it."""
    assert said(question, LIGHT) == said(question, STANDARD)


def test_replace_is_the_standard_one_too() -> None:
    """What is not named stays."""
    frozen = LIGHT["Frozen"](1, "x")
    assert light.replace(frozen, a=2) == LIGHT["Frozen"](2, "x")
    with pytest.raises(TypeError):
        light.replace(frozen, nothing=2)


@light.dataclass(frozen=True, slots=True)
class Kept:
    """At the top of a module, where pickle finds it."""

    a: int
    b: int = 2


def test_a_frozen_one_can_be_pickled() -> None:
    """Though it cannot be changed."""
    assert pickle.loads(pickle.dumps(Kept(1))) == Kept(1)


def test_a_base_with_fields_is_refused() -> None:
    """Their fields would be forgotten."""
    with pytest.raises(TypeError, match="bases"):

        @light.dataclass(slots=True)
        class _Below(Kept):
            c: int
