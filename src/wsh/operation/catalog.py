"""All operations, found by listing this folder; for documentation, generated clients and tests."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import fields
from types import ModuleType

import wsh.operation
from wsh.operation.element import ElementOperations
from wsh.operation.operation import Operation


def list_operations() -> dict[str, Operation]:
    """Every operation by its name, sorted by noun and then in the order of the file."""
    found: dict[str, Operation] = {}
    for entry in pkgutil.iter_modules(wsh.operation.__path__):
        for operation in _declared_in(importlib.import_module(f"wsh.operation.{entry.name}")):
            known = found.setdefault(operation.name, operation)
            assert known is operation, f"the operation {operation.name} is declared twice"
    return found


def _declared_in(module: ModuleType) -> Iterator[Operation]:
    for value in vars(module).values():
        if isinstance(value, Operation):
            yield value
        elif isinstance(value, ElementOperations):
            yield from (getattr(value, field.name) for field in fields(value))
