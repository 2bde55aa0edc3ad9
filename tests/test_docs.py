"""Docs stay true: every setting, command and error code is documented, every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

from wsh.cli.main import NAMES
from wsh.wire.error import list_error_classes
from wsh.wire.setting import SETTINGS

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))


def _all_text() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in [*DOCS, ROOT / "README.md"])


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    missing = [setting.key for setting in SETTINGS if f"`{setting.key}`" not in text or setting.env not in text]
    assert missing == []


def test_every_command_is_documented() -> None:
    text = _all_text()
    assert [name for name in NAMES if f"wsh {name}" not in text] == []


def test_every_error_code_is_documented() -> None:
    text = _all_text()
    assert sorted({cls.code for cls in list_error_classes() if cls.code not in text}) == []


def test_every_link_between_the_docs_leads_somewhere() -> None:
    broken = []
    for path in [*DOCS, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
            if "://" not in target and not (path.parent / target).exists():
                broken.append(f"{path.name}: {target}")
    assert broken == []
