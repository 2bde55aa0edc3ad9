"""Argument models of programs that only read: what a plain allow entry permits.

Interpreters, build tools, pagers and anything that can run another program have no model here and never will.
"""

from __future__ import annotations

from collections.abc import Mapping

from wsh.policy.harmless import coreutil, odd, search
from wsh.policy.harmless.git import GIT
from wsh.policy.harmless.model import Judge

PROGRAMS: Mapping[str, Judge] = {**coreutil.PROGRAMS, **search.PROGRAMS, **odd.PROGRAMS, "git": GIT}
