"""Risk models of real programs, as data: which of their uses destroy something."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wsh.policy.danger import code, database, file, package, service, system, wrapper
from wsh.policy.danger.git import GIT
from wsh.policy.danger.model import RiskModel
from wsh.policy.parse.option import arity


def _collect() -> dict[str, tuple[RiskModel, ...]]:
    found: dict[str, tuple[RiskModel, ...]] = {"git": (GIT,)}
    tables: list[Mapping[str, RiskModel]] = [
        module.PROGRAMS for module in (file, service, package, system, database, code, wrapper)
    ]
    tables.append({name: wrapper.runner(verbs, wrapper.SKIPS.get(name, 0)) for name, verbs in wrapper.RUNNERS.items()})
    for table in tables:
        for names, model in table.items():
            for name in names.split():
                found[name] = (*found.get(name, ()), model)
    return found


PROGRAMS = _collect()
_LOADER = RiskModel(
    arity=arity("--library-path --preload --argv0 --audit --inhibit-rpath", permute=False), check=wrapper.loader_check
)
_VERSION = re.compile(r"-?[0-9][0-9.]*$")


def find_models(name: str) -> tuple[RiskModel, ...]:
    """The models of a program by its base name; versions (`python3.11`) and variants (`mkfs.ext4`) are seen through."""
    if name in PROGRAMS:
        return PROGRAMS[name]
    if name.startswith("mkfs."):
        return PROGRAMS["mkfs"]
    if name.startswith(("ld-linux", "ld-musl", "ld.so", "ld64.so")):
        return (_LOADER,)
    return PROGRAMS.get(_VERSION.sub("", name), ())
