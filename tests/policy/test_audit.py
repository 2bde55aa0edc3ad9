"""The trail: complete, in order, and broken visibly when touched."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import multiprocessing
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

import wsh.policy.audit
from wsh.policy import Policy, PolicyRequest, decide
from wsh.policy.audit import Audit, describe_decision, describe_result


def filled(path: Path, count: int = 5, **limits: int) -> Audit:
    audit = Audit(path, **limits)
    for number in range(count):
        audit.append({"kind": "decision", "trace_id": f"t{number}"})
    return audit


def test_entries_are_numbered_chained_and_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "audit.jsonl"
    audit = filled(path)
    entries = audit.read()
    assert [entry["seq"] for entry in entries] == [1, 2, 3, 4, 5]
    assert all(after["prev"] == before["hash"] for before, after in itertools.pairwise(entries))
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert audit.verify().intact and audit.verify().entries == 5
    assert [entry["trace_id"] for entry in audit.read(limit=2)] == ["t3", "t4"]


def _edit(lines: list[str]) -> list[str]:
    return [line.replace("t2", "t9") for line in lines]


def _reforge(lines: list[str]) -> list[str]:
    from wsh.policy.audit import _hash

    record = json.loads(lines[2])
    record["trace_id"] = "t9"
    record["hash"] = _hash(record)
    return [*lines[:2], json.dumps(record) + "\n", *lines[3:]]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_edit, "was changed"),
        (_reforge, "chain is broken"),
        (lambda lines: lines[:1] + lines[2:], "chain is broken"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "chain is broken"),
        (lambda lines: lines[:-1], "cut off"),
        (lambda lines: [], "cut off"),
        (lambda lines: [*lines[:2], "garbage\n", *lines[2:]], "no entry"),
        (lambda lines: [*lines, "garbage\n"], "no entry"),
        (lambda lines: [*lines, "\n"], "no entry"),
        (lambda lines: lines[1:], "beginning was cut off"),
    ],
)
def test_tampering_shows(tmp_path: Path, damage, said: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "audit.jsonl"
    audit = filled(path)
    path.write_text("".join(damage(path.read_text().splitlines(keepends=True))))
    report = audit.verify()
    assert not report.intact and any(said in problem for problem in report.problems), report


def test_a_missing_anchor_shows(tmp_path: Path) -> None:
    audit = filled(tmp_path / "audit.jsonl")
    (tmp_path / "audit.jsonl.head").unlink()
    assert "missing" in audit.verify().problems[0]


def test_an_end_that_was_cut_off_still_shows_after_the_log_went_on(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for kept in (3, 0):
        audit = filled(path)
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:kept]))
        audit.append({"kind": "decision"})
        Audit(path).append({"kind": "decision"})
        report = Audit(path).verify()
        assert not report.intact, (kept, report)
        for file in tmp_path.iterdir():
            file.unlink()


def test_the_chain_goes_on_across_rotation_and_restarts(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for _ in range(4):
        filled(path, 10, max_bytes=2000, keep=3)
    audit = Audit(path, max_bytes=2000, keep=3)
    report = audit.verify()
    files = sorted(p.name for p in tmp_path.iterdir() if p.suffix[1:].isdigit())
    assert report.intact and files == ["audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.3"]
    entries = audit.read()
    assert entries[-1]["seq"] == 40 and [e["seq"] for e in entries] == list(range(entries[0]["seq"], 41))
    oldest = (tmp_path / "audit.jsonl.3").read_bytes()
    (tmp_path / "audit.jsonl.3").unlink()
    assert "beginning was cut off" in audit.verify().problems[0]
    (tmp_path / "audit.jsonl.3").write_bytes(oldest)
    assert audit.verify().intact
    (tmp_path / "audit.jsonl.2").unlink()
    assert not audit.verify().intact


@pytest.mark.parametrize("at", ["open", "unlink"])
def test_a_rotation_that_fails_on_a_full_disk_does_not_look_like_a_log_that_was_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    path = tmp_path / "audit.jsonl"
    audit = Audit(path, max_bytes=2000, keep=1)
    while not (tmp_path / "audit.jsonl.1").exists() or path.stat().st_size < 1700:
        audit.append({"kind": "decision"})
    real = os.open

    def refuse(file: object, flags: int, mode: int = 0o777) -> int:
        if file == path and not path.exists():
            raise OSError(errno.ENOSPC, "full")
        return real(file, flags, mode)  # type: ignore[arg-type]  # what the log gives

    def keep(_: Path) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        if at == "open":
            patch.setattr(os, "open", refuse)
        else:
            patch.setattr(Path, "unlink", keep)
        with pytest.raises(OSError, match="full"):
            audit.append({"kind": "decision", "text": "x" * 400})
    assert audit.verify().problems == ()
    audit.append({"kind": "decision"})
    assert Audit(path).verify().problems == ()


def test_others_write_while_the_log_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.jsonl"
    audit = filled(path, 10)
    real = wsh.policy.audit._hash
    seen: list[int] = []

    def look(record: Mapping[str, object]) -> str:
        lock = os.open(tmp_path / "audit.jsonl.lock", os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(lock)
        with monkeypatch.context() as patch:
            patch.setattr("wsh.policy.audit._hash", real)
            seen.append(Audit(path, max_bytes=4000).append({"kind": "decision"})["seq"])
        return real(record)

    with monkeypatch.context() as patch:
        patch.setattr("wsh.policy.audit._hash", look)
        report = audit.verify()
    assert report.intact and report.entries == 10 and seen == list(range(11, 21))
    assert audit.verify().entries == 20


def test_a_line_torn_by_a_crash_is_told_and_does_not_stop_the_log(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = filled(path)
    with path.open("ab") as file:
        file.write(b'{"seq": 6, "half')
    again = Audit(path)
    again.append({"kind": "decision"})
    report = again.verify()
    assert report.intact and report.entries == 6 and "no entry" in report.notes[0]
    assert audit.read()[-1]["seq"] == 6


def _write_many(path: str, name: str) -> None:
    audit = Audit(Path(path), max_bytes=60_000)
    for number in range(100):
        audit.append({"writer": name, "number": number})


def test_several_processes_write_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(str(path), f"w{i}")) for i in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    audit = Audit(path)
    assert audit.verify().intact
    entries = audit.read()
    assert len(entries) == 300
    for name in ("w0", "w1", "w2"):
        assert [e["number"] for e in entries if e["writer"] == name] == list(range(100))


def test_no_value_of_a_variable_reaches_the_log(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl")
    secret = "hunter2secret"
    for request in (
        PolicyRequest(argv=("ls",), env={"TOKEN": secret}),
        PolicyRequest(argv=("env", f"TOKEN={secret}", "ls")),
        PolicyRequest(command=f"TOKEN={secret} ls"),
        PolicyRequest(command=f"A=1 TOKEN='{secret}' ls; B=\"{secret}\" cat"),
        PolicyRequest(command=f"export TOKEN={secret}"),
        PolicyRequest(command=f"ls && env TOKEN={secret} x"),
    ):
        audit.append(describe_decision(request, decide(request, Policy()), trace_id="t", tool="x"))
    text = (tmp_path / "audit.jsonl").read_text()
    assert secret not in text and text.count("TOKEN") == 6


def test_an_entry_says_who_asked_what_and_how_it_ended(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl")
    request = PolicyRequest(actor="agent:x", command="ls -la", cwd="/tmp", workspace="w", caller_surface="chat")
    audit.append(describe_decision(request, decide(request, Policy()), trace_id="tr-1", tool="execute_command"))
    audit.append(
        describe_result(trace_id="tr-1", tool="execute_command", argv=("ls",), cwd="/tmp", exit_code=0, duration_ms=3)
    )
    decision, result = audit.read()
    assert (decision["actor"], decision["trace_id"], decision["argv"], decision["cwd"]) == (
        "agent:x",
        "tr-1",
        ["ls", "-la"],
        "/tmp",
    )
    assert (decision["effect"], decision["reason"], decision["caller_surface"]) == ("deny", "not_allowlisted", "chat")
    assert (result["exit_code"], result["duration_ms"]) == (0, 3)


def test_a_huge_argv_is_cut_and_still_told_apart(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl")
    for last in "ab":
        request = PolicyRequest(argv=("echo", *(["x" * 100] * 600), last))
        audit.append(describe_decision(request, decide(request, Policy()), trace_id=None, tool="x"))
    first, second = audit.read()
    assert len(json.dumps(first)) < 40_000 and first["argv"][-1] != second["argv"][-1]


def test_a_request_with_very_many_variables_is_recorded(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl")
    request = PolicyRequest(argv=("ls",), env={f"V{number:06}_{'x' * 50}": "1" for number in range(30_000)})
    audit.append(describe_decision(request, decide(request, Policy()), trace_id="t", tool="x"))
    (entry,) = audit.read()
    assert entry["env_names"][0].startswith("V000000") and entry["env_names"][-1] == "[... 29744 more]"


def test_an_append_is_quick(tmp_path: Path) -> None:
    audit = filled(tmp_path / "audit.jsonl", 200)
    before = os.times().user
    for _ in range(200):
        audit.append({"kind": "decision"})
    assert os.times().user - before < 1


def test_the_newest_entries_are_found_in_older_files_too(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl", max_bytes=200_000, keep=3)
    sizes = [10, 70_000, 1, 65_400, 140_000, 30, 64_900, 0]
    for number, size in enumerate(sizes):
        audit.append({"number": number, "text": "x" * size})
    with audit.path.open("ab") as file:
        file.write(b'\nno entry\n{"hash": "torn')
    numbers = [entry["number"] for entry in audit.read()]
    assert numbers == list(range(len(sizes)))
    assert [entry["number"] for entry in audit.read(3)] == numbers[-3:]
    assert next(audit.read_backwards())["number"] == numbers[-1]
