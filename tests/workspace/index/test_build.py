"""Building: what is listed and skipped, what an update sees, and what a killed, broken or older index becomes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.support.waiting import until, wait_until
from tests.support.warm import WarmPopen
from tests.support.workspace.tools import FILES, MakeTools, Tools, write_tree
from wsh.wire.system.place import Places
from wsh.workspace.child import LocalRunner
from wsh.workspace.index import build, pool, store
from wsh.workspace.index.folder import IndexFolder
from wsh.workspace.index.plan import Job
from wsh.workspace.search.search import SearchRequest
from wsh.workspace.surroundings import ToolContext


@pytest.fixture
def tools(make_tools: MakeTools) -> Tools:
    """What is built here is built as by a server, in a process of its own; what was there before need not be."""
    return make_tools(runner_of_builds=LocalRunner())


@pytest.fixture
def indexed(make_tools: MakeTools, tools: Tools) -> Tools:
    make_tools()("index_build")
    return tools


def git(tree: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(tree), *identity, *arguments], check=True, capture_output=True)


def home_of(tools: Tools) -> IndexFolder:
    return tools.service.home_of(os.path.realpath(tools.cwd))


def current(tools: Tools) -> Path:
    path = home_of(tools).find_current()
    assert path is not None
    return path


def test_a_build_leaves_nothing_to_merge_and_an_update_no_log(make_tools: MakeTools, tree: Path) -> None:
    dice = random.Random(5)
    syllables = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
    for number in range(60):
        words = ["".join(dice.choices(syllables, k=4)) for _ in range(1500)]
        (tree / f"text{number}.md").write_text("\n".join(" ".join(words[at : at + 8]) for at in range(0, 1500, 8)))
    tools = make_tools()
    tools("index_build")
    path = current(tools)
    with closing(sqlite3.connect(path)) as database:
        segments = [
            database.execute(f"SELECT count(DISTINCT segid) FROM {name}_idx").fetchone() for name in ("words", "grams")
        ]
    assert segments == [(1,), (1,)]
    tools("search", query="anything")  # a reader holds the file open, as a server does
    (tree / "text7.md").write_text("one word more\n")
    tools("index_build")
    assert path.with_name(path.name + "-wal").stat().st_size == 0


# listing


def test_an_index_without_a_file_is_brought_up_to_date(tools: Tools, tree: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for _ in range(2):
        assert tools("index_build", workspace=str(empty))["files"]["listed"] == 0
    (empty / "first.txt").write_text("the numbat\n")
    assert tools("index_build", workspace=str(empty))["files"]["added"] == 1
    assert tools.paths(query="numbat", workspace=str(empty)) == ["first.txt"]


def test_a_file_below_a_linked_folder_is_not_read(tools: Tools, tree: Path) -> None:
    write_tree(tree.parent / "outside", {"key.txt": "the secret numbat\n"})
    write_tree(tree / "folder", {"key.txt": "a harmless bilby\n"})
    git(tree, "init")
    git(tree, "add", ".")
    tools("index_build")
    assert tools.paths(query="bilby") == ["folder/key.txt"]
    (tree / "folder").rename(tree.parent / "folder")
    (tree / "folder").symlink_to(tree.parent / "outside")  # git still lists folder/key.txt
    assert tools("index_build")["skippedByReason"] == {"symlink": 2}
    assert tools.paths(query="numbat") == tools.paths(query="bilby") == []


@pytest.mark.parametrize("by", ["git", "walk"])
def test_the_folders_of_wsh_are_no_part_of_an_index(tools: Tools, places: Places, by: str) -> None:
    above = places.state.parent
    write_tree(above, {"wsh/kept.txt": "own numbat\n", "wsh.txt": "other numbat\n", "wshed/x.txt": "third numbat\n"})
    if by == "git":
        git(above, "init")
        git(above, "add", ".")
    assert tools("index_build", workspace=str(above))["listedBy"] == by
    assert sorted(map(str, tools.paths(query="numbat", workspace=str(above)))) == ["wsh.txt", "wshed/x.txt"]
    assert tools("index_status", workspace=str(above))["stale"] == {"added": 0, "changed": 0, "removed": 0}


def test_git_says_which_files_belong(tools: Tools, tree: Path) -> None:
    git(tree, "init")
    (tree / ".gitignore").write_text("*.tmp\nout/\n")
    write_tree(tree, {"ignored.tmp": "echidna\n", "out/made.py": "echidna\n", "untracked.py": "echidna\n"})
    git(tree, "add", "app")
    git(tree, "commit", "-m", "x")
    built = tools("index_build")
    assert built["listedBy"] == "git"
    assert tools.paths(query="echidna") == ["untracked.py"]
    status = tools("workspace_status")["git"]
    assert (status["branch"], status["root"]) == ("main", str(tree)) and status["untracked"] > 0


def test_a_repository_cannot_start_programs_through_its_configuration(tools: Tools, tree: Path, tmp_path: Path) -> None:
    git(tree, "init")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    git(tree, "config", "core.fsmonitor", str(trap))
    tools("index_build")
    tools("workspace_status")
    assert not (tmp_path / "sprung").exists()


def test_a_clone_inside_a_repository_is_indexed_too(tools: Tools, tree: Path) -> None:
    git(tree, "init")
    inner = write_tree(
        tree / "vendored", {"inner.py": "potoroo = 1\n", "skip.log": "potoroo\n", ".gitignore": "*.log\n"}
    )
    git(inner, "init")
    git(inner, "add", ".")
    git(inner, "commit", "-m", "x")
    tools("index_build")
    assert tools.paths(query="potoroo") == ["vendored/inner.py"]


def test_a_path_in_conflict_is_indexed_once(tools: Tools, tree: Path) -> None:
    git(tree, "init")
    git(tree, "add", ".")
    git(tree, "commit", "-m", "base")
    for branch, word in (("left", "bandicoot"), ("right", "cassowary")):
        git(tree, "checkout", "-b", branch, "main")
        (tree / "notes.txt").write_text(f"Plain notes about the {word}.\n")
        git(tree, "commit", "-am", branch)
    with pytest.raises(subprocess.CalledProcessError):
        git(tree, "merge", "left")
    stages = subprocess.run(["git", "-C", str(tree), "ls-files", "-u"], check=True, capture_output=True).stdout
    assert len(stages.splitlines()) == 3
    built = tools("index_build")
    assert (built["listedBy"], built["files"]["added"]) == ("git", len(FILES))
    assert tools.paths(query="bandicoot cassowary") == ["notes.txt"]
    assert tools("workspace_status")["git"]["conflicts"] == 1


def test_a_tracked_file_that_is_not_there_is_not_in_the_index(tools: Tools, tree: Path) -> None:
    git(tree, "init")
    git(tree, "add", ".")
    (tree / "notes.txt").unlink()
    built = tools("index_build")
    assert built["files"]["added"] == len(FILES) - 1 and built["skippedByReason"] == {}
    assert tools("index_status")["stale"] == {"added": 0, "changed": 0, "removed": 0}


def test_a_submodule_is_indexed_whatever_its_name(tools: Tools, tree: Path) -> None:
    git(tree, "init")
    inner = write_tree(tree / "three.js", {"inner.js": "let potoroo = 1\n"})
    git(inner, "init")
    git(inner, "add", ".")
    git(inner, "commit", "-m", "x")
    git(tree, "add", ".")
    assert tools("index_build")["listedBy"] == "git"
    assert tools.paths(query="potoroo") == ["three.js/inner.js"]


HOSTILE_NAMES = [
    b"line\nbreak.txt",
    b"tab\there.txt",
    b"100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 0\tnotes.txt",
    "caf\u00e9.txt".encode(),  # composed
    "cafe\u0301.txt".encode(),  # and decomposed: two names
    b"NOTES.txt",
    b"-rf.txt",
    b"'quote\".txt",
    b"\xef\xbb\xbfmark.txt",
    b"bad\xff.txt",
    b"bad\xfe.txt",  # both decode to the same replacement
    b"surrogate\xed\xa0\x80.txt",
]


@pytest.mark.parametrize("by", ["git", "walk"])
def test_hostile_names_are_indexed_or_counted_and_never_end_a_build(tools: Tools, tree: Path, by: str) -> None:
    if by == "git":
        git(tree, "init")
    for name in HOSTILE_NAMES:
        Path(os.fsdecode(os.fsencode(tree) + b"/" + name)).write_text("the bilby\n")
    sound = [name.decode() for name in HOSTILE_NAMES[:-3]]
    built = tools("index_build")
    assert built["listedBy"] == by and built["skippedByReason"] == {"badName": 3}
    status = tools("index_status")
    assert status["skippedByReason"] == {"badName": 3} and status["stale"] == {"added": 0, "changed": 0, "removed": 0}
    assert tools("index_build")["files"]["added"] == 0
    for match in ("words", "literal"):
        found = {str(path) for path in tools.paths(query="bilby", match=match, top=50)}
        assert found == {*sound}
    for path in found:
        assert tools("show_file", path=path)["text"] == "the bilby\n"


def test_processes_that_share_a_queue_never_get_the_same_job() -> None:
    count = 100_000
    queue = pool._Queue(count)
    takers: list[tuple[int, int]] = []
    for _ in range(4):
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            taken: list[int] = []
            while batch := queue.take():
                taken += batch
            with os.fdopen(write_end, "wb") as out:
                out.write(b"".join(number.to_bytes(4, "little") for number in taken))
            os._exit(0)
        os.close(write_end)
        takers.append((pid, read_end))
    numbers: list[int] = []
    for pid, read_end in takers:
        with os.fdopen(read_end, "rb") as told:
            while part := told.read(4):
                numbers.append(int.from_bytes(part, "little"))
        os.waitpid(pid, 0)
    queue.close()
    assert sorted(numbers) == list(range(count))


def test_every_job_is_done_once_by_many_workers(tree: Path) -> None:
    (tree / "many").mkdir()
    for number in range(1_000):
        (tree / f"many/{number}").touch()
    jobs = [Job(f"many/{number}") for number in range(1_000)]
    done = [(number, prepared[0]) for number, prepared in pool.prepare_all(jobs, str(tree), 1 << 20, 4)]
    assert sorted(done) == [(number, f"many/{number}") for number in range(1_000)]


def test_without_git_ignore_files_and_known_folders_are_left_out(tools: Tools, tree: Path) -> None:
    write_tree(
        tree,
        {
            ".gitignore": "*.log\n!keep.log\n/build\n",
            "a.log": "dunnart\n",
            "keep.log": "dunnart\n",
            "build/x.py": "dunnart\n",
            "sub/build/y.py": "dunnart\n",
            "sub/.gitignore": "z.py\n",
            "sub/z.py": "dunnart\n",
            "node_modules/m/index.js": "dunnart\n",
        },
    )
    assert tools("index_build")["listedBy"] == "walk"
    assert sorted(map(str, tools.paths(query="dunnart"))) == ["keep.log", "sub/build/y.py"]


def test_files_that_are_no_text_are_skipped_and_counted(tools: Tools, tree: Path) -> None:
    (tree / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8)
    (tree / "bundle.js").write_text("x=1;" * 3000)
    (tree / "large.txt").write_text("word\n" * 500_000)
    (tree / "locked.py").write_text("secret\n")
    (tree / "link.py").symlink_to("/etc/passwd")
    os.mkfifo(tree / "pipe.py")
    (tree / "latin.txt").write_bytes("Stra\xdfe caf\xe9\n".encode("latin-1"))
    (tree / "broken.txt").write_bytes("größe ".encode() * 5 + b"\xff bettong\n")
    (tree / "wide.txt").write_bytes("Überbilby\n".encode("utf-16"))
    (tree / "empty.py").touch()
    built = tools("index_build")
    assert built["skippedByReason"] == {"binary": 1, "minified": 1, "notRegular": 1, "symlink": 1, "tooLarge": 1}
    assert tools("index_status")["stale"] == {"added": 0, "changed": 0, "removed": 0}
    assert tools.paths(query="café OR cafe") == ["latin.txt"]
    assert tools.paths(query="bettong") == ["broken.txt"]
    assert tools.paths(query="Überbilby") == ["wide.txt"] == tools.paths(query="uberbilby")
    assert tools("show_file", path="wide.txt")["encoding"] == "utf-16"
    assert tools("show_file", path="latin.txt")["encoding"] == "iso-8859-1"


def test_a_file_that_changes_while_it_is_read_is_left_out_and_had_later(tools: Tools, tree: Path) -> None:
    hot = tree / "hot.txt"
    hot.write_text("the dunnart runs\n" * 100_000)
    churn = (
        "import itertools, os, sys, time\n"
        "for n in itertools.count(10**18): os.utime(sys.argv[1], ns=(n, n)); time.sleep(0.0005)"
    )
    writer = subprocess.Popen([sys.executable, "-c", churn, str(hot)])
    try:
        wait_until(
            lambda: tools("index_build", full=True)["skippedByReason"] == {"changedWhileRead": 1},
            "a build that meets the file while it changes",
        )
        assert tools.paths(query="dunnart") == [] and tools.paths(query="quokka") == ["docs/guide.md"]
    finally:
        writer.kill()
        writer.wait()
    assert tools("index_build")["skippedByReason"] == {}
    assert set(tools.paths(query="dunnart")) == {"hot.txt"}


# updating


def test_an_update_sees_what_was_added_changed_and_removed(indexed: Tools, tree: Path) -> None:
    write_tree(tree, {"new.py": "mulgara = 1\n"})
    (tree / "notes.txt").write_text("now about the thylacine\n")
    (tree / "lib/store.go").unlink()
    assert indexed("index_status")["stale"] == {"added": 1, "changed": 1, "removed": 1}
    assert indexed("index_build")["files"] == {"listed": 5, "added": 1, "changed": 1, "removed": 1, "unchanged": 3}
    assert indexed("index_status")["stale"] == {"added": 0, "changed": 0, "removed": 0}
    assert indexed.paths(query="mulgara") == ["new.py"]
    assert indexed.paths(query="thylacine") == ["notes.txt"]
    for gone in ("wombat", "Lookup"):
        for match in ("words", "literal", "regex"):
            assert indexed.paths(query=gone, match=match) == []


def test_a_file_that_was_only_touched_is_not_read_into_the_index_again(indexed: Tools, tree: Path) -> None:
    os.utime(tree / "notes.txt")
    assert indexed("index_status")["stale"]["changed"] == 1
    assert indexed("index_build")["files"]["changed"] == 0
    assert indexed("index_status")["stale"]["changed"] == 0


def test_a_change_within_the_same_instant_and_size_is_seen(tools: Tools, tree: Path) -> None:
    path = tree / "same.py"
    path.write_text("aardvark = 1\n")
    tools("index_build")
    info = path.stat()
    path.write_text("anteater = 1\n")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    tools("index_build")
    assert tools.paths(query="anteater") == ["same.py"]


def test_ids_outlive_a_rebuild_and_a_move_of_lines(indexed: Tools, tree: Path) -> None:
    def ids() -> list[str]:
        return [hit["id"] for hit in indexed("search", query="connection OR port OR quokka")["hits"]]

    before = ids()
    indexed("index_build", full=True)
    assert ids() == before
    path = tree / "app/server.py"
    path.write_text('"""Longer than it was."""\n\n\n' + path.read_text())
    indexed("index_build")
    assert set(before) <= {*ids(), *before} and len(set(before) & set(ids())) >= len(before) - 1
    shown = indexed("show_file", id=indexed("search", query="accept_connection")["hits"][0]["id"])
    assert "def accept_connection" in shown["text"]


def test_many_updates_leave_an_index_like_a_new_one(indexed: Tools, tree: Path) -> None:
    dice = random.Random(7)
    words = ["alder", "birch", "cedar", "dogwood", "elder", "fig"]
    for turn in range(6):
        for number in range(4):
            text = f"def {dice.choice(words)}_{turn}():\n    return '{dice.choice(words)}'\n"
            (tree / f"gen{number}.py").write_text(text)
        (tree / f"gen{dice.randrange(4)}.py").unlink()
        indexed("index_build")
    updated = {
        w: sorted(map(str, indexed.paths(query=w, match=m, top=50))) for w in words for m in ("words", "literal")
    }
    connection = sqlite3.connect(current(indexed))
    connection.execute("INSERT INTO words(words) VALUES ('integrity-check')")
    connection.execute("INSERT INTO grams(grams) VALUES ('integrity-check')")
    connection.close()
    indexed("index_build", full=True)
    fresh = {w: sorted(map(str, indexed.paths(query=w, match=m, top=50))) for w in words for m in ("words", "literal")}
    assert updated == fresh


def test_texts_that_nobody_refers_to_are_given_back(
    indexed: Tools, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Built in this process, where less is enough to be worth copying.
    monkeypatch.setattr(build, "_COMPACT_FROM_BYTES", 1 << 16)
    home, dice, big = home_of(indexed), random.Random(5), tree / "big.txt"
    request = build.read_request(json.dumps({"folder": str(home.folder), "root": str(tree)}).encode())
    (first,) = home.folder.glob("text-*.bin")
    for turn in range(12):
        # What is stored is compressed, and of this no more than a half goes.
        big.write_text(f"turn {turn}\n" + "".join(f"{dice.randbytes(30).hex()}\n" for _ in range(1_000)))
        build.build(request, lambda phase, done, total: None)
    build.build(request, lambda phase, done, total: None)
    (texts,) = home.folder.glob("text-*.bin")
    assert texts != first and texts.stat().st_size < 3 * big.stat().st_size
    assert indexed.paths(query="turn 11", match="literal") == ["big.txt"]


# interruption


def test_a_cancelled_build_kills_its_processes_and_leaves_the_old_index(indexed: Tools, tree: Path) -> None:
    write_tree(tree, {f"many/file{n}.py": f"def f{n}(): return 'wallaby'\n" * 60 for n in range(400)})

    async def cancel_midway() -> None:
        task = asyncio.ensure_future(indexed.call("index_build", {}))
        await until(lambda: any("Indexing" in message for message, _ in indexed.progress), "the build to begin")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    indexed.progress.clear()
    indexed.runner.run(cancel_midway())
    left = [p for p in psutil.Process().children(recursive=True) if "build_child" in " ".join(p.cmdline())]
    assert left == []
    assert indexed.paths(query="wallaby") == [] and indexed.paths(query="quokka") == ["docs/guide.md"]
    assert indexed("index_build")["files"]["added"] == 400
    assert indexed("search", query="wallaby", top=1)["nextCursor"] is not None


def test_builders_killed_at_random_moments_leave_an_index_that_answers(
    indexed: Tools, tree: Path, torture: bool
) -> None:
    dice = random.Random(11)
    home = home_of(indexed)
    write_tree(tree, {f"many/file{n}.py": f"def f{n}():\n    return 'wallaby {n}'\n" * 20 for n in range(120)})
    indexed("index_build")
    state = -1  # the turn whose build was the last to be finished
    outcomes: set[bool] = set()
    for turn in range(100 if torture else 4):
        (tree / "notes.txt").write_text(f"turn{turn} for the numbat\n")
        for number in range(0, 120, 2):
            (tree / f"many/file{number}.py").write_text(f"def g{turn}():\n    return 'numbat {turn}'\n\n\n")
        request = {"folder": str(home.folder), "root": str(tree), "full": turn % 2 == 0}
        child = WarmPopen(
            [sys.executable, "-P", "-m", "wsh.workspace.index.build_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(json.dumps(request).encode())
        child.stdin.close()
        child.stdout.readline()
        time.sleep(dice.uniform(0, 0.4))  # the moment is random on purpose
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.stdout.close()
        child.wait()
        assert indexed.paths(query="accept_connection", match="words", top=1) == ["app/server.py"]
        assert indexed.paths(query="quokka", match="literal") == ["docs/guide.md"]
        assert indexed("index_status")["problem"] is None
        shown = [hit["snippet"]["text"] for hit in indexed("search", query="numbat", path="notes.txt")["hits"]]
        state = turn if shown == [f"turn{turn} for the numbat"] else state
        assert shown == ([f"turn{state} for the numbat"] if state >= 0 else [])
        several = indexed("search", query=f"g{state}", match="literal", path="many", top=100)["hits"]
        assert len(several) == (60 if state >= 0 else 0)  # all of a build, or nothing
        outcomes.add(state == turn)
        connection = sqlite3.connect(current(indexed))
        assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO words(words) VALUES ('integrity-check')")
        connection.close()
    assert not torture or outcomes == {True, False}
    indexed("index_build")
    assert indexed.paths(query="numbat for OR numbat", path="notes.txt") == ["notes.txt"]
    leftovers = [p.name for p in home.folder.iterdir() if p.name.startswith(("index-", "text-"))]
    assert sorted({name.split(".")[0].split("-")[0] for name in leftovers}) == ["index", "text"]
    assert len([name for name in leftovers if name.startswith("text-")]) == 1


def test_two_builds_at_once_take_turns(indexed: Tools, tree: Path) -> None:
    write_tree(tree, {"extra.py": "kookaburra = 1\n"})

    async def both() -> list[int]:
        results = await asyncio.gather(*(indexed.call("index_build", {}) for _ in range(3)))
        return sorted(result["files"]["added"] for result in results)

    assert indexed.runner.run(both()) == [0, 0, 1]


def test_a_running_build_is_told_by_its_phase(indexed: Tools) -> None:
    home = home_of(indexed)
    assert indexed("index_status")["running"] is None
    with home.locked():
        home.progress_file.write_text(json.dumps({"phase": "indexing", "done": 3, "total": 9, "startedAt": 1.0}))
        running = indexed("index_status")["running"]
    assert (running["phase"], running["done"], running["total"]) == ("indexing", 3, 9)


# broken


def damage_header(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 100)


def damage_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(8192, len(data), 512):
        data[at : at + 256] = os.urandom(256)
    path.write_bytes(data)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def older(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version={store.FORMAT - 1}")
    connection.close()


@pytest.mark.parametrize("damage", [damage_header, damage_middle, truncate, empty, older])
@pytest.mark.parametrize("match", ["words", "regex"])
def test_a_damaged_or_older_index_is_rebuilt_and_that_is_said(
    make_tools: MakeTools, damage: object, match: str
) -> None:
    make_tools()("index_build")
    broken = make_tools(runner_of_builds=LocalRunner())
    path = current(broken)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    assert callable(damage)
    damage(path)
    found = broken("search", query="quokka", match=match)
    assert [hit["path"] for hit in found["hits"]] == ["docs/guide.md"]
    assert [warning["code"] for warning in found["warnings"]] == ["INDEX_REBUILT"]
    assert broken("search", query="quokka", match=match)["warnings"] == []


@pytest.mark.parametrize("seconds", [10_500_000_000, -10_500_000_000, 300_000_000_000])
def test_a_file_with_a_time_beyond_64_bits_is_indexed_and_shown(
    make_tools: MakeTools, tree: Path, seconds: int
) -> None:
    tools = make_tools()
    tools("index_build")
    for path in ("notes.txt", "docs/guide.md"):
        os.utime(tree / path, (seconds, seconds))  # a file system may have years of its own, and not so many
    (tree / "docs/guide.md").write_text("# Guide\n\nThe quokka log is gone, and so is the zebra.\n")
    os.utime(tree / "docs/guide.md", (seconds, seconds))
    tools("index_build")
    assert tools.paths(query="gone") == ["docs/guide.md"]
    assert tools("show_file", path="notes.txt")["modifiedAt"].endswith("Z")
    assert tools("index_status")["stale"] == {"added": 0, "changed": 0, "removed": 0}


@pytest.mark.parametrize("match", ["words", "regex"])
def test_a_search_whose_index_is_replaced_meanwhile_is_made_in_the_new_one(
    make_tools: MakeTools, monkeypatch: pytest.MonkeyPatch, match: str
) -> None:
    tools = make_tools()
    tools("index_build")
    service, indexes = tools.service, [current(tools)]
    find = service._index_for

    async def find_and_build(request: SearchRequest, root: str) -> Path | None:
        found = await find(request, root)
        if len(indexes) == 1:
            await service.build(ToolContext(str(tools.cwd)), full=True)
            indexes.append(current(tools))
        return found

    monkeypatch.setattr(service, "_index_for", find_and_build)
    found = tools("search", query="quokka", match=match)
    assert ([hit["path"] for hit in found["hits"]], found["warnings"]) == (["docs/guide.md"], [])
    assert indexes[0] != indexes[1] == current(tools)


@pytest.mark.parametrize("damage", [damage_header, truncate, older])
def test_building_on_a_damaged_or_older_index_says_that_it_began_anew(make_tools: MakeTools, damage: object) -> None:
    make_tools()("index_build")
    tools = make_tools(runner_of_builds=LocalRunner())
    path = current(tools)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    assert callable(damage)
    damage(path)
    problem = tools("index_status")["problem"]
    assert problem is None or problem["reason"] in ("corrupt", "version")
    built = tools("index_build")
    assert built["rebuilt"]["reason"] == ("version" if damage is older else "corrupt")
    assert built["files"]["added"] == len(FILES)
    assert tools.paths(query="quokka") == ["docs/guide.md"]


@pytest.mark.parametrize("how", ["gone", "cut", "changed"])
def test_texts_that_were_tampered_with_are_noticed(make_tools: MakeTools, how: str) -> None:
    make_tools()("index_build")
    tools = make_tools(runner_of_builds=LocalRunner())
    (texts,) = home_of(tools).folder.glob("text-*.bin")
    if how == "gone":
        texts.unlink()
    elif how == "cut":
        os.truncate(texts, 10)
    else:
        texts.write_bytes(bytes(byte ^ 1 for byte in texts.read_bytes()))
    found = tools("search", query="quokka")
    assert [hit["path"] for hit in found["hits"]] == ["docs/guide.md"]
    assert [warning["code"] for warning in found["warnings"]] == ["INDEX_REBUILT"]


def test_damaged_transcripts_begin_anew_and_that_is_said(make_tools: MakeTools) -> None:
    from wsh.workspace.transcript.transcript import Transcript

    tools = make_tools()
    document = Transcript("k", "s", "ls", "possum", "/", time.time(), 0, 1)
    tools.service.transcripts.put([document])
    tools.service.transcripts.close()
    path = tools.service.transcripts.path
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    path.write_bytes(b"garbage" * 1000)
    found = tools("search", query="possum", mode="transcripts")
    assert found["hits"] == []
    assert [warning["code"] for warning in found["warnings"]] == ["TRANSCRIPTS_REBUILT"]
    tools.service.transcripts.put([document])
    assert len(tools("search", query="possum", mode="transcripts")["hits"]) == 1
