"""Showing files: inside the workspace only, with encoding and hash, never a dump of what is no text."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests.support.workspace.tools import Tools


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside.txt", "app/../../outside.txt", "link-out", "folder-out/x"])
def test_nothing_outside_the_workspace_is_shown(indexed: Tools, tree: Path, path: str) -> None:
    (tree.parent / "outside.txt").write_text("secret\n")
    (tree.parent / "secrets").mkdir()
    (tree.parent / "secrets/x").write_text("secret\n")
    (tree / "link-out").symlink_to(tree.parent / "outside.txt")
    (tree / "folder-out").symlink_to(tree.parent / "secrets")
    assert indexed.refused("show_file", path=path)["code"] == "FORBIDDEN"


def test_a_link_that_stays_inside_is_followed(indexed: Tools, tree: Path) -> None:
    (tree / "alias.txt").symlink_to("notes.txt")
    assert indexed("show_file", path="alias.txt")["path"] == "notes.txt"


def test_what_is_not_a_file_is_said(indexed: Tools, tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    assert indexed.refused("show_file", path="gone.txt")["code"] == "NOT_FOUND"
    assert indexed.refused("show_file", path="notes.txt/below")["code"] == "NOT_FOUND"
    assert indexed.refused("show_file", path="app")["code"] == "INVALID_REQUEST"
    assert indexed.refused("show_file", path="pipe")["code"] == "INVALID_REQUEST"
    assert indexed.refused("show_file", path="nul\0byte")["code"] == "INVALID_REQUEST"
    assert indexed.refused("show_file", path="notes.txt", workspace=str(tree / "none"))["code"] == "NOT_FOUND"


def test_a_binary_file_is_described(indexed: Tools, tree: Path) -> None:
    data = b"\x89PNG\r\n\x1a\n\0\0\0" + bytes(range(256))
    (tree / "picture.png").write_bytes(data)
    shown = indexed("show_file", path="picture.png")
    assert shown["binary"] is True and shown["text"] is None and shown["mimeType"] == "image/png"
    assert shown["sha256"] == hashlib.sha256(data).hexdigest() and shown["size"] == len(data)


def test_a_change_since_the_index_is_told(indexed: Tools, tree: Path) -> None:
    assert indexed("show_file", path="notes.txt")["changedSinceIndex"] is False
    (tree / "notes.txt").write_text("other\n")
    shown = indexed("show_file", path="notes.txt")
    assert shown["changedSinceIndex"] is True and shown["sha256"] == hashlib.sha256(b"other\n").hexdigest()
    (tree / "fresh.txt").write_text("new\n")
    assert indexed("show_file", path="fresh.txt")["changedSinceIndex"] is None


def test_a_hit_in_a_file_that_moved_on_is_found_where_it_is_now(indexed: Tools, tree: Path) -> None:
    hit = indexed("search", query="parse_arguments")["hits"][0]
    path = tree / "app/server.py"
    path.write_text("# one more\n# line or two\n" + path.read_text())
    shown = indexed("show_file", id=hit["id"])
    assert shown["changedSinceIndex"] is True
    assert shown["text"].startswith("def parse_arguments") and shown["startLine"] == hit["startLine"] + 2
    path.write_text("nothing left\n")
    assert indexed("show_file", id=hit["id"])["text"] == "nothing left\n"


def test_a_cut_never_splits_a_character(indexed: Tools, tree: Path) -> None:
    (tree / "wide.txt").write_text("äöü€😀\n")
    for size in range(1, 16):
        shown = indexed("show_file", path="wide.txt", maxBytes=size)
        assert "äöü€😀\n".startswith(shown["text"]) and "\ufffd" not in shown["text"]


def test_lines_count_as_editors_count_them(indexed: Tools, tree: Path) -> None:
    for text, total in (("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\r\nb\r\n", 2), ("\n\n", 2)):
        (tree / "counted.txt").write_text(text, newline="")
        shown = indexed("show_file", path="counted.txt")
        assert (shown["totalLines"], shown["text"]) == (total, text)


def test_a_large_file_is_read_in_parts(indexed: Tools, tree: Path) -> None:
    (tree / "large.log").write_text("".join(f"line {n}\n" for n in range(1, 400_001)))
    shown = indexed("show_file", path="large.log", startLine=250_000, endLine=250_001)
    assert shown["text"] == "line 250000\nline 250001\n" and shown["totalLines"] == 400_000
