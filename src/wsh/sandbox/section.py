"""`[sandbox]` of `policy.toml`: the user's profiles, and which one agents get."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from wsh.sandbox.profile import BUILT_IN, ENVIRONMENT, NETWORKS, OFF, STRICTEST, Profile
from wsh.sandbox.root import Ground, find_problem

Backend: TypeAlias = Literal["auto", "bubblewrap", "landlock"]
Wrong: TypeAlias = Callable[[tuple[str | int, ...], str], None]
"""Notes what is wrong, and where."""

KEYS = ("agents", "accept_weaker", "backend", "folders", "profiles")
_PROFILE_KEYS = "base workspace writable readable network environment processes file_bytes memory_bytes".split()
_NAME = re.compile(r"[a-z0-9][a-z0-9+_-]{0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")


@dataclass(frozen=True)
class SandboxPolicy:
    """Checked. While the policy file is broken, `strict` says why, and every sandbox is the strictest."""

    agents: Profile | None = None
    profiles: Mapping[str, Profile] = field(default_factory=lambda: dict(BUILT_IN))
    accept_weaker: bool = False
    backend: Backend = "auto"
    folders: tuple[str, ...] = ()
    """Where a sandboxed session's folder may lie; none means anywhere that can be held."""
    strict: str | None = None

    def find(self, name: str) -> Profile | None:
        """The profile of that name; None for `off`. Raises KeyError."""
        if name == OFF:
            return None
        return STRICTEST if self.strict is not None else self.profiles[name]


def strictest(problem: str) -> SandboxPolicy:
    return SandboxPolicy(agents=STRICTEST, strict=problem)


class SectionReader:
    """Reads the table `sandbox`; every problem goes to `wrong` with its path in the document."""

    def __init__(self, table: Mapping[str, Any], ground: Ground, wrong: Wrong) -> None:
        self._table = table
        self._ground = ground
        self._wrong = wrong

    def read(self) -> SandboxPolicy:
        profiles = dict(BUILT_IN) | self._profiles()
        agents = self._table.get("agents", OFF)
        if not isinstance(agents, str) or (agents != OFF and agents not in profiles):
            known = ", ".join([OFF, *profiles])
            self._wrong(("sandbox", "agents"), f"sandbox.agents must be one of {known}, not {agents!r}")
            agents = OFF
        weaker = self._table.get("accept_weaker", False)
        if not isinstance(weaker, bool):
            self._wrong(("sandbox", "accept_weaker"), "sandbox.accept_weaker must be true or false")
        backend = self._table.get("backend", "auto")
        if backend not in get_args(Backend):
            self._wrong(("sandbox", "backend"), f"sandbox.backend must be one of {', '.join(get_args(Backend))}")
        folders = self._roots(("sandbox", "folders"), self._table.get("folders", []), None)
        return SandboxPolicy(profiles.get(agents), profiles, weaker is True, backend, folders)

    def _profiles(self) -> dict[str, Profile]:
        tables = self._table.get("profiles", {})
        if not isinstance(tables, dict):
            self._wrong(("sandbox", "profiles"), "profiles are written as [sandbox.profiles.NAME]")
            return {}
        found = {}
        for name, table in tables.items():
            here = ("sandbox", "profiles", name)
            if not _NAME.fullmatch(name) or name == OFF or name in BUILT_IN:
                self._wrong(
                    here,
                    f"{name!r} cannot be a profile's name: small letters, digits, '+', '-' and '_', and none that is built in",
                )
            elif not isinstance(table, dict):
                self._wrong(here, f"write [sandbox.profiles.{name}]")
            else:
                found[name] = self._profile(name, table, here)
        return found

    def _profile(self, name: str, table: Mapping[str, Any], here: tuple[str, ...]) -> Profile:
        for key in table:
            if key not in _PROFILE_KEYS:
                self._wrong((*here, key), f"a sandbox profile has no key {key!r}; known are {', '.join(_PROFILE_KEYS)}")
        base = table.get("base", STRICTEST.name)
        if base not in BUILT_IN:
            self._wrong((*here, "base"), f"base must be one of {', '.join(BUILT_IN)}, not {base!r}")
            base = STRICTEST.name
        profile = replace(BUILT_IN[base], name=name)
        workspace = table.get("workspace", profile.workspace)
        if not isinstance(workspace, bool):
            self._wrong(
                (*here, "workspace"), "workspace must be true or false: whether the session's folder is writable"
            )
        network = table.get("network", profile.network)
        if network not in NETWORKS:
            self._wrong((*here, "network"), f"network must be one of {', '.join(NETWORKS)}, not {network!r}")
        return replace(
            profile,
            workspace=workspace is True,
            network=network if network in NETWORKS else "off",
            writable=self._roots((*here, "writable"), table.get("writable", []), True),
            readable=self._roots((*here, "readable"), table.get("readable", []), False),
            environment=self._variables((*here, "environment"), table.get("environment")),
            processes=self._number((*here, "processes"), table.get("processes"), 8, 1_000_000),
            file_bytes=self._number((*here, "file_bytes"), table.get("file_bytes"), 4096, 1 << 60),
            memory_bytes=self._number((*here, "memory_bytes"), table.get("memory_bytes"), 16 << 20, 1 << 60),
        )

    def _texts(self, path: tuple[str, ...], value: Any) -> list[tuple[int, str]]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self._wrong(path, f"{path[-1]} must be a list of texts")
            return []
        return list(enumerate(value))

    def _roots(self, path: tuple[str, ...], value: Any, writable: bool | None) -> tuple[str, ...]:
        """Canonical. `writable` None: folders that only bound where sessions may work."""
        found = []
        for index, text in self._texts(path, value):
            expanded = self._ground.home + text[1:] if text == "~" or text.startswith("~/") else text
            if not os.path.isabs(expanded) or "\0" in expanded:
                self._wrong((*path, index), f"{text!r} must be an absolute path (or begin with ~/)")
                continue
            root = os.path.realpath(expanded)
            if not os.path.exists(root):
                self._wrong((*path, index), f"{text!r} does not exist")
                continue
            if writable is not False and not os.path.isdir(root):
                self._wrong((*path, index), f"{text!r} is not a folder")
                continue
            problem = None if writable is None else find_problem(root, self._ground, writable=writable)
            if problem is not None:
                self._wrong((*path, index), f"{text!r} cannot be a root: {problem}")
                continue
            found.append(root)
        return tuple(found)

    def _variables(self, path: tuple[str, ...], value: Any) -> tuple[str, ...]:
        if value is None:
            return ENVIRONMENT
        found = []
        for index, name in self._texts(path, value):
            if _VARIABLE.fullmatch(name):
                found.append(name)
            else:
                self._wrong((*path, index), f"{name!r} is not the name of a variable (a * may end it)")
        return (*ENVIRONMENT, *found)

    def _number(self, path: tuple[str, ...], value: Any, least: int, most: int) -> int | None:
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self._wrong(path, f"{path[-1]} must be a whole number from {least} to {most}")
            return None
        return value
