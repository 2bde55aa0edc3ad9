"""What a sandbox leaves in the file system is taken away, and nothing around it is touched."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from pathlib import Path

import pytest

from wsh.sandbox.point import PointRefused, SandboxLedger


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the place of /tmp."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(folder))
    return folder


def mode_of(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_temporary_folder_that_is_gone_or_stays_changes_nothing_around_it(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SandboxLedger(tmp_path / "records", "default")
    gone = Path(ledger.make_temporary("gone"))
    gone.rmdir()
    ledger.remove("gone")
    assert mode_of(shared) == 0o1777
    stays = ledger.make_temporary("stays")
    real = os.rmdir

    def refuse(path: str | os.PathLike[str], **more: int) -> None:
        if os.fspath(path) in (stays, os.path.basename(stays)):
            raise OSError(16, "busy", path)
        real(path, **more)

    monkeypatch.setattr(os, "rmdir", refuse)
    ledger.remove("stays")
    assert mode_of(shared) == 0o1777


def test_folders_that_a_program_closed_to_itself_are_removed(tmp_path: Path, shared: Path) -> None:
    ledger = SandboxLedger(tmp_path / "records", "default")
    own = Path(ledger.make_temporary("closed"))
    assert mode_of(own) == 0o700
    (own / "deep" / "er").mkdir(parents=True)
    (own / "deep" / "er" / "file").write_text("x")
    (own / "deep" / "er").chmod(0)
    (own / "deep").chmod(0)
    ledger.remove("closed")
    assert not own.exists() and list(shared.iterdir()) == [] and list((tmp_path / "records").iterdir()) == []


def test_what_stands_where_the_temporary_folder_should_be_is_left_alone(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda n: "taken")
    (shared / "wsh-taken").mkdir()
    (shared / "wsh-taken" / "of others").write_text("kept")
    ledger = SandboxLedger(tmp_path / "records", "default")
    with pytest.raises(FileExistsError):
        ledger.make_temporary("late")
    assert (shared / "wsh-taken" / "of others").read_text() == "kept"
    assert list((tmp_path / "records").iterdir()) == []


def test_a_temporary_folder_may_be_as_deep_as_a_program_likes(tmp_path: Path, shared: Path) -> None:
    ledger = SandboxLedger(tmp_path / "records", "default")
    fd = os.open(ledger.make_temporary("deep"), os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=fd)
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=fd))
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    before = len(os.listdir("/proc/self/fd"))
    ledger.remove("deep")
    assert list(shared.iterdir()) == [] and list((tmp_path / "records").iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_link_in_the_place_of_a_folder_is_not_followed(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that still runs puts it there while the folder is removed."""
    ledger = SandboxLedger(tmp_path / "records", "default")
    outside = tmp_path / "outside"
    outside.mkdir()
    outside.chmod(0o751)
    own = Path(ledger.make_temporary("raced"))
    (own / "inner").mkdir()
    real_chmod, real_rmdir = os.chmod, os.rmdir
    busy = [16]

    def swap(path: str | os.PathLike[str], mode: int) -> None:
        if os.path.realpath(path) == str(own / "inner"):
            (own / "inner").rename(own / "aside")
            (own / "inner").symlink_to(outside)
        real_chmod(path, mode)

    def refuse(path: str | os.PathLike[str], **more: int) -> None:
        if busy and os.path.basename(os.fspath(path)) == "inner":
            raise OSError(busy.pop(), "busy", path)
        real_rmdir(path, **more)

    monkeypatch.setattr(os, "chmod", swap)
    monkeypatch.setattr(os, "rmdir", refuse)
    ledger.remove("raced")
    assert mode_of(outside) == 0o751
    monkeypatch.undo()
    ledger.sweep(())
    assert outside.exists()


def test_what_could_not_be_removed_is_removed_by_the_next_server(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SandboxLedger(tmp_path / "records", "default")
    stays = ledger.make_temporary("stays")
    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", _refuse)
        ledger.remove("stays")
    assert os.path.isdir(stays)
    ledger.sweep(())
    assert not os.path.exists(stays) and list((tmp_path / "records").iterdir()) == []


def _refuse(path: str | os.PathLike[str], **_: int) -> None:
    raise OSError(16, "busy", path)


def test_a_server_leaves_what_belongs_to_one_whose_name_goes_on_after_a_dot(tmp_path: Path, shared: Path) -> None:
    theirs = SandboxLedger(tmp_path / "records", "dev.two").make_temporary("lives")
    SandboxLedger(tmp_path / "records", "dev").sweep(())
    assert os.path.isdir(theirs)
    SandboxLedger(tmp_path / "records", "dev.two").sweep(())
    assert not os.path.exists(theirs)


def test_no_point_is_made_or_removed_behind_a_link(tmp_path: Path) -> None:
    ledger = SandboxLedger(tmp_path / "records", "default")
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / ".git").mkdir(parents=True)
    (elsewhere / "hooks").mkdir(parents=True)
    points = [(str(project / ".git" / "hooks"), True), (str(project / ".git" / "config"), False)]
    ledger.make_points("first", lambda made: points)
    assert sorted(path.name for path in (project / ".git").iterdir()) == ["config", "hooks"]
    (project / ".git").rename(project / "aside")
    (project / ".git").symlink_to(elsewhere)
    with pytest.raises(PointRefused, match="config"):
        ledger.make_points("second", lambda made: points[1:])
    ledger.remove("first")
    assert [path.name for path in elsewhere.iterdir()] == ["hooks"]
    assert list((tmp_path / "records").iterdir()) == []
