"""The simple gate: names, paths, roots, and no shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsh.policy.exec_gate import ExecGate, GateRefusal, check_program, resolve_cwd, split_command


def gate(commands: str | None = None, roots: str | None = None) -> ExecGate:
    environ = {}
    if commands is not None:
        environ["ALLOWED_COMMANDS"] = commands
    if roots is not None:
        environ["ALLOWED_CWD_ROOTS"] = roots
    return ExecGate.from_environment(environ)


@pytest.mark.parametrize(
    ("allowed", "command", "passes"),
    [
        (None, "ls", False),
        ("", "ls", False),
        (" , ,", "ls", False),
        ("ls,cat", "ls", True),
        (" ls , cat ", "cat x", True),
        ("ls", "pwd", False),
        ("ls", "lsx", False),
        ("ls", "l", False),
        ("ls", "/bin/ls", False),
        ("ls", "./ls", False),
        ("/bin/ls", "/bin/ls -l", True),
        ("/bin/ls", "ls", False),
        ("/bin/ls", "/bin/../bin/ls", False),
        ("*", "whoami", True),
        ("ls,*", "/bin/whoami", True),
        ("sh *", "sh -c ls", True),
        ("git status", "git status -s", True),
        ("git status", "git push", False),
        ("LS", "ls", False),
        ("ls", "'ls'", True),
        ("ls", "'ls '", False),
        ("env", "env rm -rf /", False),
        ("*", "rm -rf /", False),
        ("*", "rm -rf x", True),
        ("*", "sh -c 'rm -rf /'", False),
    ],
)
def test_a_program_passes_by_its_exact_name(allowed: str | None, command: str, passes: bool) -> None:
    argv = split_command(command)
    if passes:
        check_program(gate(allowed), argv, None, None)
    else:
        with pytest.raises(GateRefusal) as caught:
            check_program(gate(allowed), argv, None, None)
        assert caught.value.fault == "forbidden"


@pytest.mark.parametrize(
    "command",
    [
        "ls; rm x",
        "ls && pwd",
        "ls | sh",
        "ls > f",
        "ls $(id)",
        "ls `id`",
        "ls $HOME",
        "ls *",
        "ls\npwd",
        "ls &",
        "A=1 ls",
        "ls ~",
    ],
)
def test_shell_syntax_is_refused_with_a_hint(command: str) -> None:
    with pytest.raises(GateRefusal) as caught:
        split_command(command)
    assert caught.value.fault == "invalid" and "without a shell" in (caught.value.hint or "")


@pytest.mark.parametrize("command", ["", "  ", "\t\n", "ls '", "ls\0", "ls \ud800", "''", "ls \u202e", "x" * 70_000])
def test_what_is_no_command_is_refused(command: str) -> None:
    with pytest.raises(GateRefusal) as caught:
        split_command(command)
    assert caught.value.fault == "invalid"


def test_quotes_make_literal_words() -> None:
    assert split_command("grep -E 'a|b; c' \"x y\" z\\ w ''") == ("grep", "-E", "a|b; c", "x y", "z w", "")


def test_a_cwd_is_resolved_against_the_callers_and_must_exist(tmp_path: Path) -> None:
    (tmp_path / "frontend").mkdir()
    (tmp_path / "file").touch()
    base = str(tmp_path)
    real = str(tmp_path.resolve())
    assert resolve_cwd(gate(), None, base) == real
    assert resolve_cwd(gate(), "frontend", base) == f"{real}/frontend"
    assert resolve_cwd(gate(), f"{base}/frontend/..", "/") == real
    for wrong in ("does-not-exist", "file", "frontend/x"):
        with pytest.raises(GateRefusal) as caught:
            resolve_cwd(gate(), wrong, base)
        assert caught.value.fault == "missing"
    for wrong in ("", "a\0b"):
        with pytest.raises(GateRefusal) as caught:
            resolve_cwd(gate(), wrong, base)
        assert caught.value.fault == "invalid"


def test_roots_contain_on_canonical_paths(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "root-other"
    (root / "in").mkdir(parents=True)
    other.mkdir()
    (root / "link").symlink_to(other)
    (tmp_path / "alias").symlink_to(root)
    limited = gate(roots=f" {tmp_path / 'alias'} , ")
    base = str(tmp_path)
    assert resolve_cwd(limited, "root/in", base) == str((root / "in").resolve())
    assert resolve_cwd(limited, "alias", base) == str(root.resolve())
    for outside in (
        "root-other",
        "root/link",
        "root/..",
        "root/in/../../root-other",
        "/",
        "root/link/../../gone",
        "gone",
    ):
        with pytest.raises(GateRefusal) as caught:
            resolve_cwd(limited, outside, base)
        assert caught.value.fault == "forbidden" and "not allowed" in caught.value.message, outside
    with pytest.raises(GateRefusal) as caught:
        resolve_cwd(limited, "root/gone", base)
    assert caught.value.fault == "missing"


def test_a_root_that_cannot_be_resolved_refuses_every_given_cwd(tmp_path: Path) -> None:
    limited = gate(roots=f"{tmp_path},/path/that/does/not/exist")
    with pytest.raises(GateRefusal) as caught:
        resolve_cwd(limited, ".", str(tmp_path))
    assert (
        caught.value.fault == "misconfigured" and "configuration problem with ALLOWED_CWD_ROOTS" in caught.value.message
    )
    assert resolve_cwd(limited, None, str(tmp_path)) == str(tmp_path.resolve())
