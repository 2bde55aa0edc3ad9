"""Frozen values for modules that short commands import: `dataclasses` takes longer to import than all the rest of such a command."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar, dataclass_transform

    Made = TypeVar("Made")

    @dataclass_transform(frozen_default=True)
    def frozen(cls: type[Made]) -> type[Made]: ...

else:

    def frozen(cls):
        """What `dataclass(frozen=True)` makes of a class with annotated fields: made by place or name, compared, shown, not changed."""
        names = tuple(cls.__annotations__)
        defaults = {name: getattr(cls, name) for name in names if hasattr(cls, name)}

        def __init__(self, *given: Any, **named: Any) -> None:
            fields = {**defaults, **dict(zip(names, given, strict=False)), **named}
            if len(given) > len(names) or fields.keys() != set(names) or named.keys() & set(names[: len(given)]):
                raise TypeError(f"{cls.__name__} has the fields {', '.join(names)}")
            self.__dict__.update({name: fields[name] for name in names})

        def __eq__(self, other: object) -> bool:
            return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

        def __hash__(self) -> int:
            return hash(tuple(self.__dict__[name] for name in names))

        def __repr__(self) -> str:
            return f"{cls.__name__}({', '.join(f'{name}={self.__dict__[name]!r}' for name in names)})"

        def __setattr__(self, name: str, _: object) -> None:
            raise AttributeError(f"{cls.__name__}.{name} cannot be set")

        cls.__init__, cls.__eq__, cls.__hash__, cls.__repr__ = __init__, __eq__, __hash__, __repr__
        cls.__setattr__ = cls.__delattr__ = __setattr__
        return cls
