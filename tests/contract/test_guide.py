"""The guides tell the truth."""

from __future__ import annotations

import json

from tests.support.contract.guide import BLOCK, DOCS, PAGES, fill, make_blocks
from wsh.bridge.frame import FRAME_TYPES
from wsh.contract.adapters import inputs, mode
from wsh.contract.reply.taxonomy import TAXONOMY

BRIDGE = (DOCS / "bridge.md").read_text()


def test_payloads_and_tables_in_the_guides_are_what_the_contract_really_gives() -> None:
    blocks = make_blocks()
    used: set[str] = set()
    for page in PAGES:
        text = (DOCS / page).read_text()
        used |= {match["name"] for match in BLOCK.finditer(text)}
        assert fill(text, blocks) == text, f"docs/{page} is stale: python -m tests.support.contract.guide"
    assert used == set(blocks)


def test_every_code_is_explained() -> None:
    text = (DOCS / "troubleshooting.md").read_text()
    for entry in TAXONOMY:
        assert entry.code in text


def test_every_frame_every_error_and_every_variable_of_the_bridge_is_documented() -> None:
    for kind in FRAME_TYPES:
        assert f"`{kind.model_fields['type'].default}`" in BRIDGE
        for name in kind.model_fields:
            assert f"`{name}`" in BRIDGE, f"{kind.__name__}.{name}"
    for name in vars(inputs).values():
        if isinstance(name, str) and name.startswith("PM_INTERACTIVE_TERMINAL_") and not name.endswith("_"):
            assert name in BRIDGE
    assert mode.MODE_VARIABLE in BRIDGE and mode.CONTAINER_VARIABLE in BRIDGE


def test_the_examples_of_the_protocol_are_the_fixtures() -> None:
    for name in ("hello", "ready", "request-run", "decision-approved"):
        fixture = json.loads((DOCS.parent / "tests" / "bridge" / "fixtures" / f"{name}.json").read_text())
        assert json.dumps(fixture) in BRIDGE, f"docs/bridge.md does not show the fixture {name}"
