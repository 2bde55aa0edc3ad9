"""How far the move away from legacy requests is: `WSH_ALIAS_STAGE`. Imports nothing of weight: a server asks before it listens."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Literal, TypeAlias

log = logging.getLogger("wsh.contract")

Stage: TypeAlias = Literal["compat", "warn", "strict"]
STAGES: tuple[Stage, ...] = ("compat", "warn", "strict")
STAGE_VARIABLE = "WSH_ALIAS_STAGE"


def find_bad_stage(environ: Mapping[str, str]) -> str | None:
    """What is wrong with the stage that `environ` names, or None."""
    value = environ.get(STAGE_VARIABLE, "").strip().lower()
    if not value or value in STAGES:
        return None
    return f"{STAGE_VARIABLE} must be one of {', '.join(STAGES)}, not {value[:40]!r}"


def parse_stage(environ: Mapping[str, str]) -> Stage:
    """The stage in force. A value that is none of the three counts as the strictest."""
    value = environ.get(STAGE_VARIABLE, "").strip().lower() or "compat"
    for stage in STAGES:
        if value == stage:
            return stage
    log.warning("%s=%r is not one of %s; strict is used", STAGE_VARIABLE, value, ", ".join(STAGES))
    return "strict"
