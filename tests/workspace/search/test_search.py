"""Searching a small workspace by words, literals and patterns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.workspace.tools import Tools
from wsh.wire.error import SandboxRefused
from wsh.workspace.search.scan import ScanResult
from wsh.workspace.search.snippet import MatchMark, mark_spans
from wsh.workspace.surroundings import ToolContext, Unbounded
from wsh.workspace.tool import call_tool


def test_without_an_index_a_search_says_how_to_build_one(tools: Tools) -> None:
    payload = tools.refused("search", query="zebra")
    assert payload["code"] == "NO_INDEX"
    assert "index_build" in payload["hint"]


def test_a_definition_comes_before_its_uses(indexed: Tools) -> None:
    assert indexed.names(query="HttpClient")[0] == "HttpClient"


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("parse arguments", "parse_arguments"),
        ("parse_arguments", "parse_arguments"),
        ("parseArguments", "parse_arguments"),
        ("http server", "HttpServer"),
        ("close all", "closeAll"),
        ("close_all", "closeAll"),
        ("lookup key", "Lookup"),
        ("zebra", "Installation"),
        ("retry*", "retryLimit"),
        ('"refuses connections"', "Troubleshooting"),
        ("quokka OR nothingatall", "Troubleshooting"),
        ("(fetch OR nothing) page", "fetchPage"),
    ],
)
def test_words_find_names_in_any_spelling(indexed: Tools, query: str, name: str) -> None:
    assert indexed.names(query=query)[0] == name


def test_not_leaves_documents_out(indexed: Tools) -> None:
    assert "HttpServer" in indexed.names(query="connection OR listens")
    assert indexed.names(query="connections -quokka") == []
    assert indexed.names(query="listens NOT nothing") == ["HttpServer"]


def test_words_that_meet_only_in_a_file_still_find_it(indexed: Tools) -> None:
    assert indexed.paths(query="partition gracefully") == ["app/server.py"]


def test_a_hit_carries_lines_snippet_and_places_of_the_match(indexed: Tools) -> None:
    hit = indexed("search", query="quokka", contextLines=1)["hits"][0]
    assert (hit["path"], hit["kind"], hit["source"], hit["lang"]) == ("docs/guide.md", "heading", "prose", "markdown")
    lines = hit["snippet"]["text"].split("\n")
    place = hit["snippet"]["matches"][0]
    line = lines[place["line"] - hit["snippet"]["startLine"]]
    assert line[place["start"] : place["end"]] == "quokka"
    assert hit["startLine"] <= place["line"] <= hit["endLine"]


def test_a_literal_is_matched_exactly(indexed: Tools) -> None:
    assert indexed.names(query='item.partition("=")', match="literal") == ["parse_arguments"]
    assert indexed.names(query="QUOKKA", match="literal") == []
    assert indexed.paths(query="om", match="literal", path="*.txt") == ["notes.txt"]


def test_a_pattern_matches_and_keeps_to_lines(indexed: Tools) -> None:
    assert indexed.names(query=r"def \w+_connection", match="regex") == ["accept_connection"]
    assert indexed.names(query=r"^type \w+ struct", match="regex") == ["Store"]
    assert indexed.names(query=r"(?i)QUOKKA", match="regex") == ["Troubleshooting"]


@pytest.mark.parametrize("match", ["literal", "regex"])
def test_a_file_that_became_shorter_while_it_was_searched_holds_up_nobody(
    indexed: Tools, tree: Path, monkeypatch: pytest.MonkeyPatch, match: str
) -> None:
    scanners = indexed.service._scanners
    scan_files = scanners.scan_files

    async def scan_and_change(*given: Any) -> ScanResult:
        found = await scan_files(*given)
        (tree / "docs/guide.md").write_text("# Guide\n")
        await indexed.service.build(ToolContext(str(tree)))
        return found

    monkeypatch.setattr(scanners, "scan_files", scan_and_change)
    (hit,) = indexed("search", query="quokka", match=match, mode="prose")["hits"]
    assert (hit["path"], hit["snippet"]["matches"]) == ("docs/guide.md", [])
    monkeypatch.undo()
    assert indexed("search", query="quokka", match=match, mode="prose")["hits"] == []


def test_places_beyond_the_end_of_a_text_are_left_out() -> None:
    assert mark_spans(b"ab\ncd\n", [(1, 100), (4, 5), (50, 60)]) == [
        MatchMark(0, 1, 2),
        MatchMark(1, 0, 2),
        MatchMark(1, 1, 2),
    ]


def test_a_pattern_that_would_explode_is_stopped(indexed: Tools, tree: object) -> None:
    assert indexed.names(query=r"(\w+\s?)+\x00", match="regex") == []  # this one is read once, whatever it looks like
    payload = indexed.refused("search", query=r"(?=\w)(\w+\s?)+\x00", match="regex", timeoutMs=700)
    assert payload["code"] == "TOOL_TIMEOUT"
    assert payload["timeoutMs"] == 700
    assert indexed.names(query="quokka", match="regex") == ["Troubleshooting"]


class _Closed(Unbounded):
    def __init__(self, *closed: Path) -> None:
        self.closed = tuple(map(str, closed))

    def check_file(self, path: str) -> None:
        if path.startswith(self.closed):
            raise SandboxRefused("closed")


@pytest.mark.parametrize(
    ("match", "query", "file"),
    [
        ("words", "HttpServer", "app/server.py"),
        ("words", "partition gracefully", "app/server.py"),
        ("literal", "DEFAULT_PORT", "app/server.py"),
        ("regex", "DEFAULT_P[A-Z]+", "app/server.py"),
        ("words", "wombat", "notes.txt"),
    ],
)
def test_what_is_closed_to_the_caller_is_not_found_in_an_index_that_has_it(
    indexed: Tools, tree: Path, match: str, query: str, file: str
) -> None:
    hit = indexed("search", query=query, match=match)["hits"][0]
    assert hit["path"] == file
    reach = _Closed(tree / "app", tree / "notes.txt", tree / "lib/store")
    narrow = ToolContext(str(tree), reach=reach)

    def call(tool: str, **arguments: object) -> dict[str, object]:
        return indexed.runner.run(call_tool(indexed.service, tool, arguments, narrow))

    assert call("search", query=query, match=match)["hits"] == []
    assert call("search", query="Lookup")["hits"], "only what is closed is left out"
    with pytest.raises(SandboxRefused):
        call("show_file", id=hit["id"])
