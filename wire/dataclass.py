"""`dataclass`, as in the standard library, for classes that a broker makes when it starts.

The standard one writes six functions for a class and compiles each: at twenty classes a tenth of a start. This one
gives it the same behaviour by functions that all share, and makes the constructor when the first instance is. What
`dataclasses.fields`, `replace` and `asdict` look for is made when they do. Only what Ottla uses is there: classes with
slots and without dataclasses among their bases. For type checkers it is the standard one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    from operator import attrgetter, ge, gt, le, lt

    from ottla.wire.compiled_text import code_of

    _MISSING = object()
    _LEFT_BEHIND = ("__dict__", "__weakref__")

    class _Factory:
        """Makes a default anew each time."""

        __slots__ = ("make",)

        def __init__(self, make):
            self.make = make

    def field(*, default_factory):
        """A field whose default is made anew each time."""
        return _Factory(default_factory)

    def dataclass(*, slots, frozen=False, eq=True, order=False, kw_only=False):
        """Make a class of its annotations."""
        assert slots

        def decorate(cls):
            return _made(cls, frozen, eq, order, kw_only)

        return decorate

    def replace(instance, /, **changes):
        """An instance that is the same but for these fields."""
        cls = type(instance)
        return cls(
            **{name: getattr(instance, name) for name in cls.__slots__ if name not in changes}, **changes
        )

    def _made(cls, frozen, eq, order, kw_only):
        if any("__dataclass_fields__" in base.__dict__ for base in cls.__mro__):
            raise TypeError(f"{cls.__name__}: a dataclass of this kind has no dataclasses among its bases")
        namespace = {name: value for name, value in cls.__dict__.items() if name not in _LEFT_BEHIND}
        names = tuple(cls.__annotations__)
        defaults = [namespace.pop(name, _MISSING) for name in names]
        namespace["__slots__"] = names
        namespace.setdefault("__match_args__", () if kw_only else names)
        values = _values_of(names)

        def make_constructor(self, *args, **given):
            made.__init__ = _constructor(made, names, defaults, frozen, kw_only)
            made.__init__(self, *args, **given)

        def equal(self, other):
            if other.__class__ is not self.__class__:
                return NotImplemented
            return values(self) == values(other)

        def hashed(self):
            return hash(values(self))

        def shown(self):
            inner = ", ".join(f"{name}={value!r}" for name, value in zip(names, values(self), strict=True))
            return f"{type(self).__qualname__}({inner})"

        namespace["__init__"] = make_constructor
        namespace["__dataclass_fields__"] = _Fields(cls.__annotations__, defaults, kw_only)
        namespace.setdefault("__repr__", shown)
        if eq:
            namespace.setdefault("__eq__", equal)
            if "__hash__" not in namespace or namespace["__hash__"] is None:
                namespace["__hash__"] = hashed if frozen else None
        if frozen:
            namespace["__setattr__"] = _refuse_to_set
            namespace["__delattr__"] = _refuse_to_delete
            namespace["__getstate__"] = lambda self: list(values(self))
            namespace["__setstate__"] = _set_state(names)
        if order:
            for compare in (lt, le, gt, ge):
                namespace[f"__{compare.__name__}__"] = _comparison(compare, values)
        made = type(cls)(cls.__name__, cls.__bases__, namespace)
        made.__qualname__ = cls.__qualname__
        return made

    def _values_of(names):
        """All values of an instance, as a tuple."""
        if len(names) > 1:
            return attrgetter(*names)
        [name] = names
        return lambda instance: (getattr(instance, name),)

    def _comparison(compare, values):
        def compared(self, other):
            if other.__class__ is not self.__class__:
                return NotImplemented
            return compare(values(self), values(other))

        return compared

    def _constructor(cls, names, defaults, frozen, kw_only):
        given = {"_fresh": _MISSING}
        parameters, body = ["self", "*"] if kw_only else ["self"], []
        for number, (name, default) in enumerate(zip(names, defaults, strict=True)):
            value = name
            if default is _MISSING:
                parameters.append(name)
            elif isinstance(default, _Factory):
                given[f"_make_{number}"] = default.make
                parameters.append(f"{name}=_fresh")
                value = f"_make_{number}() if {name} is _fresh else {name}"
            else:
                given[f"_default_{number}"] = default
                parameters.append(f"{name}=_default_{number}")
            if frozen:
                given[f"_set_{number}"] = cls.__dict__[name].__set__
                body.append(f" _set_{number}(self, {value})")
            else:
                body.append(f" self.{name} = {value}")
        text = f"def __init__({', '.join(parameters)}):\n" + "\n".join(body)
        exec(code_of(text, "<constructor>"), given)
        constructor = given["__init__"]
        constructor.__qualname__ = f"{cls.__qualname__}.__init__"
        return constructor

    def _refuse_to_set(self, name, value):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _refuse_to_delete(self, name):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _set_state(names):
        def set_state(self, state):
            for name, value in zip(names, state, strict=True):
                object.__setattr__(self, name, value)

        return set_state

    class _Fields:
        """What the functions of `dataclasses` look for, made when they do."""

        def __init__(self, annotations, defaults, kw_only):
            self._facts = annotations, defaults, kw_only

        def __get__(self, instance, cls):
            import dataclasses

            annotations, defaults, kw_only = self._facts
            fields = []
            for (name, kind), default in zip(annotations.items(), defaults, strict=True):
                given = {}
                if isinstance(default, _Factory):
                    given["default_factory"] = default.make
                elif default is not _MISSING:
                    given["default"] = default
                fields.append((name, kind, dataclasses.field(**given)))
            # With a text it need not make one up, for which it would look into the signature.
            surrogate = dataclasses.make_dataclass(
                cls.__name__, fields, kw_only=kw_only, namespace={"__doc__": cls.__doc__ or cls.__name__}
            )
            found = surrogate.__dataclass_fields__
            for owner in cls.__mro__:
                if owner.__dict__.get("__dataclass_fields__") is self:
                    owner.__dataclass_fields__ = found
            return found


__all__ = ["dataclass", "field", "replace"]
