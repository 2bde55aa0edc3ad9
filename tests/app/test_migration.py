"""The state folder: migrated with a copy kept, refused when a newer version wrote it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wsh.app.migration import Migration, bring_up_to_date
from wsh.http.token_check import TokenCheck
from wsh.wire.setting import SettingError
from wsh.wire.system.place import Places, ensure_private
from wsh.wire.token_file import TokenFile
from wsh.wire.version import VERSION


def _format(places: Places) -> dict[str, object]:
    told: dict[str, object] = json.loads((places.state / "format.json").read_text())
    return told


def test_a_new_folder_gets_the_newest_number(places: Places) -> None:
    bring_up_to_date(places)
    assert _format(places) == {"format": 2, "written_by": VERSION}


def test_tokens_of_the_first_version_become_digests_and_go_on_working(places: Places) -> None:
    ensure_private(places.config)
    places.tokens.write_text(json.dumps({"version": 1, "owner": "a-plain-token-of-0.1.0", "agents": []}))
    places.tokens.chmod(0o600)
    bring_up_to_date(places)
    assert "a-plain-token" not in places.tokens.read_text()
    found = TokenCheck(TokenFile(places.tokens)).find_holder("a-plain-token-of-0.1.0")
    assert found is not None and found.role == "owner"
    written = [path for path in Path(places.state).rglob("*") if path.is_file()]
    assert not [path for path in written if "a-plain-token" in path.read_text(errors="replace")]


def test_what_a_migration_changes_is_copied_first_and_a_failed_one_is_tried_again(places: Places) -> None:
    ensure_private(places.state)
    note = places.state / "note"
    note.write_text("old")
    (places.state / "format.json").write_text('{"format": 2, "written_by": "0.2.0"}')
    tries = []

    def change(places: Places) -> None:
        tries.append(note.read_text())
        note.write_text("new")
        if len(tries) == 1:
            raise OSError("no room")

    third = Migration(3, touches=lambda places: [note], run=change)
    with pytest.raises(OSError, match="no room"):
        bring_up_to_date(places, [third])
    assert _format(places)["format"] == 2
    bring_up_to_date(places, [third])
    assert (tries, _format(places)["format"]) == (["old", "new"], 3)
    assert (places.state / "before-3" / "note").read_text() == "old"


def test_an_older_version_says_what_it_cannot_read_and_changes_nothing(places: Places) -> None:
    ensure_private(places.state)
    file = places.state / "format.json"
    file.write_text('{"format": 99, "written_by": "7.0.0"}')
    with pytest.raises(SettingError, match=r"written by wsh 7\.0\.0, in format 99"):
        bring_up_to_date(places)
    done = subprocess.run(
        [sys.executable, "-m", "wsh.cli.main", "server", "--bind", "127.0.0.1:0"],
        capture_output=True, text=True, env=dict(os.environ), timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "7.0.0" in done.stderr and "XDG_STATE_HOME" in done.stderr
    assert sorted(path.name for path in places.state.iterdir()) == ["format.json"]
