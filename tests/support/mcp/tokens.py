"""Tokens as a real tokenizer counts them (o200k_base)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

from tests.support.mcp.judge import find_node, node_environ, set_up


def count_exactly(texts: Sequence[str]) -> list[int]:
    folder = set_up()
    done = subprocess.run(
        [str(find_node()), str(folder / "tokens.mjs")],
        input=json.dumps(list(texts)),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env=node_environ(),
    )
    found: list[int] = json.loads(done.stdout)
    return found
