"""Packages of others whose `__init__` imports far more than we use: their parts are imported without it.

A package that is opened so is there, and its submodules can be imported one by one. Its own code runs when somebody asks it for a
name, so a usual import gets all of it.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType


class _Package(ModuleType):
    def __getattr__(self, name: str) -> object:
        if (
            (name.startswith("__") and name not in ("__all__", "__version__"))
            or self.__spec__ is None
            or self.__spec__.loader is None
        ):
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]  # from now on it is like any other
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def open_package(name: str) -> None:
    """Make `name` importable by its parts. One that is imported already stays as it is."""
    if name in sys.modules:
        return
    parent, _, own = name.rpartition(".")
    if parent:
        open_package(parent)
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(name=name)
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _Package
    sys.modules[name] = package
    if parent:
        setattr(sys.modules[parent], own, package)
