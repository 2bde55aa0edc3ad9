"""Every argument of every tool changes the result, or is refused. The last test compares what is proven with the schemas."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.workspace.tools import FILES, MakeTools, Tools, write_tree
from wsh.workspace.child import LocalRunner
from wsh.workspace.schema import TOOLS
from wsh.workspace.search.filter import compile_globs, compile_name
from wsh.workspace.transcript.transcript import Transcript

PROVEN: dict[str, set[str]] = {}

Test = TypeVar("Test", bound=Callable[..., None])


def proves(tool: str, *arguments: str) -> Callable[[Test], Test]:
    """Marks a test as the proof that these arguments of `tool` change its result, or are refused."""

    def note(test: Test) -> Test:
        PROVEN.setdefault(tool, set()).update(arguments)
        return test

    return note


def make_transcripts() -> list[Transcript]:
    """Three commands of the last hour, counted from now: the suite may have begun long ago."""
    now = time.time()
    return [
        Transcript("a:1", "alpha", "make test", "the zebra compiled\nok", "/srv", now - 3600, 0, 900),
        Transcript("a:2", "alpha", "make lint", "the zebra failed", "/srv", now - 1800, 2, 100),
        Transcript("b:1", "beta", "cat notes", "zebra notes", "/home", now - 60, 0, 5),
    ]


@pytest.fixture
def full(indexed: Tools) -> Tools:
    """The small tree indexed, and three commands that terminals ran."""
    indexed.service.transcripts.put(make_transcripts())
    return indexed


def sessions(tools: Tools, **arguments: Any) -> list[str]:
    hits = tools("search", **arguments)["hits"]
    return [hit["transcript"]["command"] for hit in hits if hit["source"] == "transcript"]


# index_build


@proves("index_build", "workspace")
def test_build_workspace(tools: Tools, tmp_path: Path) -> None:
    other = write_tree(tmp_path / "other", {"a.py": "x = 1\n"})
    assert tools("index_build", workspace=str(other))["files"]["added"] == 1
    assert tools("index_build")["files"]["added"] == len(FILES)


@proves("index_build", "mode")
def test_build_mode(tools: Tools) -> None:
    assert tools("index_build", mode="prose")["files"]["added"] == 2
    assert tools("index_status")["sources"] == ["prose"]
    assert tools.refused("search", query="x", mode="code")["code"] == "NO_INDEX"
    assert tools("index_build", mode="code")["files"]["added"] == 3
    assert tools("index_status")["sources"] == ["code", "prose"]
    built = tools("index_build", mode="transcripts")
    assert built["files"] is None and built["transcripts"]["documents"] == 0
    assert tools.refused("index_build", mode="pictures")["code"] == "INVALID_REQUEST"


@proves("index_build", "full")
def test_build_full(indexed: Tools) -> None:
    assert indexed("index_build")["files"]["unchanged"] == len(FILES)
    assert indexed("index_build", full=True)["files"] | {"listed": 0} == {
        "listed": 0,
        "added": len(FILES),
        "changed": 0,
        "removed": 0,
        "unchanged": 0,
    }
    assert indexed("index_build", full=True, mode="prose")["files"]["changed"] == 2


@proves("index_build", "paths")
def test_build_paths(indexed: Tools, tree: Path) -> None:
    (tree / "app/server.py").write_text("alpaca = 1\n")
    (tree / "lib/store.go").write_text("package llama\n")
    assert indexed("index_build", paths=["app"])["files"]["changed"] == 1
    assert indexed.paths(query="alpaca") == ["app/server.py"]
    assert indexed.paths(query="llama") == []
    assert indexed("index_build", paths=["lib/store.go"])["files"]["changed"] == 1
    assert indexed.refused("index_build", paths=["nothing/here"])["code"] == "NOT_FOUND"
    assert indexed.refused("index_build", paths=["../elsewhere"])["code"] == "FORBIDDEN"
    assert indexed.refused("index_build", paths=["app"], mode="transcripts")["code"] == "INVALID_REQUEST"


@proves("index_build", "timeoutMs")
def test_build_timeout(make_tools: MakeTools) -> None:
    payload = make_tools(runner_of_builds=LocalRunner()).refused("index_build", timeoutMs=1)
    assert (payload["code"], payload["timeoutMs"]) == ("TOOL_TIMEOUT", 1)


# index_status


@proves("index_status", "workspace")
def test_status_workspace(indexed: Tools, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert indexed("index_status")["exists"] is True
    assert indexed("index_status", workspace=str(tmp_path / "empty"))["exists"] is False
    assert indexed.refused("index_status", workspace=str(tmp_path / "gone"))["code"] == "NOT_FOUND"


@proves("index_status", "timeoutMs")
def test_status_timeout(indexed: Tools) -> None:
    assert indexed.refused("index_status", timeoutMs=1)["code"] == "TOOL_TIMEOUT"


# search


@proves("search", "query")
def test_search_query(full: Tools) -> None:
    assert full.names(query="quokka") == ["Troubleshooting"]
    assert full.names(query="wombat") == [None]
    for empty in ("", "   "):
        assert full.refused("search", query=empty)["code"] == "INVALID_REQUEST"


@proves("search", "workspace")
def test_search_workspace(full: Tools, tmp_path: Path) -> None:
    write_tree(tmp_path / "other", {"a.py": "quokka = 1\n"})
    full("index_build", workspace=str(tmp_path / "other"))
    assert full.paths(query="quokka", workspace=str(tmp_path / "other")) == ["a.py"]
    assert full.paths(query="quokka") == ["docs/guide.md"]


@proves("search", "match")
def test_search_match(full: Tools) -> None:
    assert full.names(query="port self", mode="code")[0] == "__init__"
    assert full.names(query="port self", match="literal") == []
    assert full.names(query="self.port", match="literal") == ["__init__"]
    assert full.names(query="self.p..t", match="literal") == []
    assert full.names(query="self.p..t", match="regex") == ["__init__"]


@proves("search", "mode")
def test_search_mode(full: Tools) -> None:
    found = {
        mode: len(full("search", query="zebra", mode=mode)["hits"]) for mode in ("all", "code", "prose", "transcripts")
    }
    assert found == {"all": 4, "code": 0, "prose": 1, "transcripts": 3}


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        ("*.py", ["app/server.py"]),
        ("app", ["app/client.js", "app/server.py"]),
        ("app/*.js", ["app/client.js"]),
        ("**/store.*", ["lib/store.go"]),
        (["app/**", "!*.js"], ["app/server.py"]),
        ("!app", ["docs/guide.md", "lib/store.go"]),
        ("{app,docs}/**", ["app/client.js", "app/server.py", "docs/guide.md"]),
        ("nothing/**", []),
    ],
)
@proves("search", "path")
def test_search_path(full: Tools, globs: str | list[str], expected: list[str]) -> None:
    queries = {"words": "return OR package OR run", "regex": "return|package|Run", "literal": "return"}
    for match, query in queries.items():
        found = {str(path) for path in full.paths(query=query, match=match, path=globs, top=50)}
        assert found <= set(expected)
        assert match == "literal" or found == set(expected)


@proves("search", "lang")
def test_search_lang(full: Tools) -> None:
    assert full.paths(query="server", lang="python", top=1) == ["app/server.py"]
    assert {*full.paths(query="server", lang=["javascript", "markdown"])} == {"app/client.js", "docs/guide.md"}
    assert full.refused("search", query="server", lang="klingon")["code"] == "INVALID_REQUEST"


@proves("search", "kind")
def test_search_kind(full: Tools) -> None:
    assert full.names(query="connection OR connections", kind="method") == ["accept_connection", "closeAll"]
    assert full.names(query="connections", kind="heading") == ["Troubleshooting"]
    assert full.names(query="connection OR close", kind=["heading", "class"]) == []
    assert full.names(query="self", match="literal", kind="class") == []
    assert sessions(full, query="zebra", kind="command") == ["cat notes", "make lint", "make test"]
    assert full.refused("search", query="x", kind="melody")["code"] == "INVALID_REQUEST"


@proves("search", "name")
def test_search_name(full: Tools) -> None:
    assert full.names(query="port", name="HttpServer") == ["HttpServer"]
    assert full.names(query="port OR return", name="__*") == ["__init__"]
    assert full.names(query="return", match="literal", name="Lookup") == ["Lookup"]
    assert full.names(query="port", name="nobody") == []


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.py", "a/b.py", True),
        ("a b/[!x]?.{py,js*}", "a b/cd.js5", True),
        ("a b/[!x]?.{py,js*}", "a b/xd.py", False),
        ("src/**/ü+(1).txt", "src/a/b/ü+(1).txt", True),
        ("docs", "docs/a/b.md", True),
        ("do\\cs", "do\\cs", True),
        ("!docs", "docs/a/b.md", False),
        ("**/" * 60 + "z", "a/" * 60 + "y", False),
        ("*a" * 40 + "z", "a" * 120, False),
    ],
)
def test_a_glob_fits_a_path_in_little_time_whatever_it_is(glob: str, path: str, fits: bool) -> None:
    assert compile_globs((glob,))(path) is fits


def test_a_name_fits_in_little_time_whatever_it_is() -> None:
    assert compile_name("*A*" * 40 + "z")("a" * 200) is False
    assert compile_name("parse?args")("module.Parse_Args")


@proves("search", "modifiedAfter")
def test_search_modified_after(full: Tools, tree: Path) -> None:
    assert full.paths(query="server", modifiedAfter="2024-01-01") == []
    assert "app/server.py" in full.paths(query="server", modifiedAfter="2020-01-01")
    os.utime(tree / "app/client.js")
    full("index_build")
    assert set(full.paths(query="server", modifiedAfter="1h")) == {"app/client.js"}
    assert full.refused("search", query="server", modifiedAfter="soon")["code"] == "INVALID_REQUEST"
    for match in ("words", "literal"):
        assert full.paths(query="server", match=match, modifiedAfter="2300-01-01") == []
        assert full.paths(query="server", match=match, modifiedAfter="999999w")


@proves("search", "session")
def test_search_session(full: Tools) -> None:
    assert sessions(full, query="zebra", session="beta") == ["cat notes"]
    assert len(sessions(full, query="zebra", session=["alpha", "beta"])) == 3
    assert full("search", query="zebra", session="beta")["searched"] == ["transcripts"]


@proves("search", "exitCode")
def test_search_exit_code(full: Tools) -> None:
    assert sessions(full, query="zebra", exitCode=2) == ["make lint"]
    assert sessions(full, query="zebra", match="regex", exitCode=2) == ["make lint"]
    for match in ("words", "regex"):
        assert sessions(full, query="zebra", match=match, exitCode=10**30) == []


@proves("search", "since", "until")
def test_search_since_and_until(full: Tools) -> None:
    assert sessions(full, query="zebra", since="10m") == ["cat notes"]
    assert sessions(full, query="zebra", until="45m") == ["make test"]
    assert sessions(full, query="zebra", since="40m", until="10m") == ["make lint"]
    assert full.refused("search", query="zebra", since="yesterday")["code"] == "INVALID_REQUEST"


@proves("search", "top", "cursor")
def test_search_top_and_cursor(full: Tools) -> None:
    everything = full.names(query="the OR server OR return", top=100, mode="code")
    assert len(everything) > 4
    for match, query in (("words", "the OR server OR return"), ("literal", "e"), ("regex", "[a-z]+")):
        whole = [hit["id"] for hit in full("search", query=query, match=match, top=100)["hits"]]
        paged: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = full("search", query=query, match=match, top=2, **cursor)
            assert len(page["hits"]) <= 2
            paged += [hit["id"] for hit in page["hits"]]
            if page["nextCursor"] is None:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert paged == whole
    first = full("search", query="the", top=1)["nextCursor"]
    assert full.refused("search", query="another", cursor=first)["code"] == "INVALID_REQUEST"
    assert full.refused("search", query="the", cursor="garbage")["code"] == "INVALID_REQUEST"
    for top in (0, 101, "many"):
        assert full.refused("search", query="the", top=top)["code"] == "INVALID_REQUEST"


@proves("search", "contextLines")
def test_search_context_lines(full: Tools) -> None:
    def lines(count: int) -> int:
        hit = full("search", query="item.partition", match="literal", contextLines=count)["hits"][0]
        return len(hit["snippet"]["text"].split("\n"))

    assert [lines(n) for n in (0, 1, 2)] == [1, 3, 5]


@proves("search", "explain")
def test_search_explain(full: Tools) -> None:
    plain = full("search", query="quokka")
    assert "explain" not in plain and "explain" not in plain["hits"][0]
    told = full("search", query="quokka -x", explain=True)
    assert told["explain"]["query"] == {"and": [{"word": "quokka"}], "not": [{"word": "x"}]}
    assert told["hits"][0]["explain"]["base"] > 0


@proves("search", "timeoutMs")
def test_search_timeout(full: Tools, tree: Path) -> None:
    (tree / "long.py").write_text("a" * 60 + "!\n")
    full("index_build")
    payload = full.refused("search", query="(?=a)(a+)+$", match="regex", timeoutMs=400)
    assert (payload["code"], payload["timeoutMs"]) == ("TOOL_TIMEOUT", 400)


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "transcripts", "path": "*.py"},
        {"mode": "transcripts", "lang": "python"},
        {"mode": "transcripts", "kind": "class"},
        {"mode": "code", "session": "alpha"},
        {"mode": "prose", "exitCode": 0},
        {"mode": "code", "since": "1h"},
        {"path": "*.py", "session": "alpha"},
        {"name": "x", "until": "1h"},
    ],
)
def test_filters_that_cannot_both_hold_are_refused(full: Tools, arguments: dict[str, Any]) -> None:
    assert full.refused("search", query="zebra", **arguments)["code"] == "INVALID_REQUEST"


# show_file


@proves("show_file", "path", "workspace")
def test_show_path_and_workspace(indexed: Tools, tree: Path, tmp_path: Path) -> None:
    shown = indexed("show_file", path="notes.txt")
    assert shown["text"] == FILES["notes.txt"] and shown["totalLines"] == 2
    assert indexed("show_file", path=str(tree / "notes.txt"))["path"] == "notes.txt"
    write_tree(tmp_path / "other", {"notes.txt": "elsewhere\n"})
    assert indexed("show_file", path="notes.txt", workspace=str(tmp_path / "other"))["text"] == "elsewhere\n"


@proves("show_file", "id")
def test_show_id(full: Tools) -> None:
    hit = full("search", query="parse_arguments")["hits"][0]
    shown = full("show_file", id=hit["id"])
    assert shown["path"] == "app/server.py" and shown["text"].startswith("def parse_arguments")
    assert (shown["startLine"], shown["endLine"]) == (hit["startLine"], hit["endLine"])
    hit = full("search", query="zebra", session="beta")["hits"][0]
    shown = full("show_file", id=hit["id"])
    assert shown["source"] == "transcript" and shown["text"] == "$ cat notes\nzebra notes"
    for wrong in ("f_aaaaaaaaaaaaa", "nonsense", "t_aaaaaaaaaaaaa"):
        assert full.refused("show_file", id=wrong)["code"] in ("NOT_FOUND", "INVALID_REQUEST")
    assert full.refused("show_file", id=hit["id"], path="notes.txt")["code"] == "INVALID_REQUEST"
    assert full.refused("show_file")["code"] == "INVALID_REQUEST"


@proves("show_file", "startLine", "endLine")
def test_show_lines(full: Tools) -> None:
    whole = FILES["app/server.py"].splitlines(keepends=True)
    shown = full("show_file", path="app/server.py", startLine=3, endLine=5)
    assert shown["text"] == "".join(whole[2:5])
    assert full("show_file", path="app/server.py", startLine=10)["text"] == "".join(whole[9:])
    assert full("show_file", path="app/server.py", endLine=2)["text"] == "".join(whole[:2])
    assert full.refused("show_file", path="app/server.py", startLine=1000)["code"] == "INVALID_REQUEST"
    assert full.refused("show_file", path="app/server.py", startLine=5, endLine=4)["code"] == "INVALID_REQUEST"
    hit = full("search", query="zebra", session="beta")["hits"][0]
    assert full("show_file", id=hit["id"], startLine=2)["text"] == "zebra notes"


@proves("show_file", "maxBytes")
def test_show_max_bytes(full: Tools) -> None:
    shown = full("show_file", path="app/server.py", maxBytes=10)
    assert shown["text"] == FILES["app/server.py"][:10] and shown["truncated"] is True
    assert full.refused("show_file", path="app/server.py", maxBytes=0)["code"] == "INVALID_REQUEST"


@proves("show_file", "timeoutMs")
def test_show_timeout(full: Tools, tree: Path) -> None:
    with (tree / "huge.txt").open("wb") as out:
        out.truncate(3 << 30)
    assert full.refused("show_file", path="huge.txt", timeoutMs=1)["code"] == "TOOL_TIMEOUT"


# check_status and workspace_status


class Around:
    """Surroundings that answer slowly when asked to."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s

    def describe_queue(self) -> dict[str, Any]:
        return {"active": 3, "limit": 64}

    async def describe_policy(self) -> dict[str, Any]:
        await asyncio.sleep(self.delay_s)
        return {"state": "strict", "warning": "line 3 is wrong"}

    def list_warnings(self, environ: Mapping[str, str]) -> list[dict[str, str]]:
        return []

    def list_sessions(self) -> list[dict[str, Any]]:
        return [
            {"name": "inside", "cwd": self.cwd, "running": True},
            {"name": "below", "cwd": f"{self.cwd}/app", "running": True},
            {"name": "outside", "cwd": "/", "running": True},
            {"name": "ended", "cwd": self.cwd, "running": False},
        ]

    cwd = ""


@proves("check_status", "timeoutMs")
def test_check_timeout_and_what_it_tells(make_tools: MakeTools) -> None:
    told = make_tools(Around())("check_status")
    assert told["queue"] == {"active": 3, "limit": 64}
    assert "python" in told["capabilities"]["grammars"]
    assert told["versions"]["indexFormat"] >= 1
    assert "POLICY_STRICT" in [warning["code"] for warning in told["warnings"]]
    assert make_tools(Around(5.0)).refused("check_status", timeoutMs=30)["code"] == "TOOL_TIMEOUT"


@proves("workspace_status", "workspace")
def test_workspace_status_workspace(make_tools: MakeTools, tree: Path, tmp_path: Path) -> None:
    around = Around()
    around.cwd = str(tree)
    tools = make_tools(around)
    told = tools("workspace_status")
    assert [session["name"] for session in told["sessions"]] == ["inside", "below"]
    assert told["modes"]["code"]["available"] is False and told["modes"]["transcripts"]["available"] is True
    tools("index_build", mode="code")
    modes = tools("workspace_status")["modes"]
    assert modes["code"] == {"available": True, "reason": None} and modes["prose"]["available"] is False
    (tmp_path / "empty").mkdir()
    assert tools("workspace_status", workspace=str(tmp_path / "empty"))["sessions"] == []


@proves("workspace_status", "timeoutMs")
def test_workspace_status_timeout(tools: Tools) -> None:
    assert tools.refused("workspace_status", timeoutMs=1)["code"] == "TOOL_TIMEOUT"


# all of them


@pytest.mark.parametrize("name", list(TOOLS))
def test_unknown_arguments_are_refused(tools: Tools, name: str) -> None:
    payload = tools.refused(name, surprise=1)
    assert payload["code"] == "INVALID_REQUEST" and payload["unknown"] == ["surprise"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search", {"query": "\ud800"}),
        ("search", {"query": "x", "path": ["a", "\udfff"]}),
        ("index_status", {"workspace": "/\ud800"}),
        ("show_file", {"path": "\udcff"}),
        ("index_build", {"\ud800": 1}),
    ],
)
def test_halves_of_surrogate_pairs_are_refused(tools: Tools, name: str, arguments: dict[str, Any]) -> None:
    assert tools.refused(name, **arguments)["code"] == "INVALID_REQUEST"


@pytest.mark.parametrize("name", list(TOOLS))
def test_the_other_spelling_of_the_deadline_is_read_as_well(tools: Tools, name: str) -> None:
    needed = {"search": {"query": "x"}, "show_file": {"path": "x"}}.get(name, {})
    for spelling in ("timeoutMs", "timeout_ms"):
        assert tools.refused(name, **needed, **{spelling: 0})["code"] == "INVALID_REQUEST"


@pytest.mark.parametrize("name", list(TOOLS))
def test_no_argument_is_without_a_proof(name: str) -> None:
    """A new argument in a schema fails here until a test above says, by `proves`, that it changes something."""
    assert PROVEN.get(name, set()) | {"timeout_ms"} == {*TOOLS[name].input_schema(1)["properties"]}
