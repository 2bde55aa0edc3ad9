"""`[sandbox]` in policy.toml: what is accepted, and where each mistake is said to be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wsh.policy.file.document import PolicyError, parse_policy
from wsh.policy.file.store import PolicyStore
from wsh.sandbox.profile import READ_ONLY, WORKSPACE, WORKSPACE_NETWORK, Profile, is_within
from wsh.sandbox.root import find_problem, survey
from wsh.wire.system.place import Places


def test_without_a_section_agents_get_no_sandbox() -> None:
    policy = parse_policy("").sandbox
    assert policy.agents is None
    assert policy.accept_weaker is False
    assert set(policy.profiles) == {"read-only", "workspace", "workspace+network"}


def test_a_profile_of_the_users_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "tools").mkdir()
    text = f"""
[sandbox]
agents = "build"
accept_weaker = true
backend = "bubblewrap"
folders = ["{tmp_path}"]

[sandbox.profiles.build]
base = "workspace"
writable = ["{tmp_path}/cache"]
readable = ["{tmp_path}/tools"]
network = "loopback"
environment = ["CARGO_*"]
processes = 64
file_bytes = 1048576
memory_bytes = 1073741824
"""
    policy = parse_policy(text).sandbox
    real = os.path.realpath(tmp_path)
    profile = policy.agents
    assert profile is policy.profiles["build"]
    assert profile is not None
    assert (profile.workspace, profile.network) == (True, "loopback")
    assert (profile.writable, profile.readable) == ((f"{real}/cache",), (f"{real}/tools",))
    assert (profile.processes, profile.file_bytes, profile.memory_bytes) == (64, 1048576, 1073741824)
    assert profile.keeps_variable("CARGO_HOME")
    assert profile.keeps_variable("LANG")
    assert not profile.keeps_variable("AWS_SECRET_ACCESS_KEY")
    assert policy.folders == (real,)


WRONG = [
    ("agents = 'nobody'", 2, "must be one of off, read-only"),
    ("accept_weaker = 'yes'", 2, "true or false"),
    ("backend = 'docker'", 2, "must be one of auto"),
    ("colour = 'red'", 2, "no key 'colour'"),
    ("folders = ['relative']", 2, "absolute path"),
    ("[sandbox.profiles.off]", 2, "cannot be a profile's name"),
    ("[sandbox.profiles.'A B']", 2, "cannot be a profile's name"),
    ("[sandbox.profiles.workspace]", 2, "cannot be a profile's name"),
    ("[sandbox.profiles.x]\nbase = 'y'", 3, "base must be one of"),
    ("[sandbox.profiles.x]\nnetwork = 'some'", 3, "network must be one of"),
    ("[sandbox.profiles.x]\nworkspace = 1", 3, "true or false"),
    ("[sandbox.profiles.x]\nreadable = 'text'", 3, "list of texts"),
    ("[sandbox.profiles.x]\nreadable = [\n '/usr',\n 'not/absolute']", 5, "absolute path"),
    ("[sandbox.profiles.x]\nreadable = ['/no/such/folder/here']", 3, "does not exist"),
    ("[sandbox.profiles.x]\nreadable = ['/']", 3, "closed to every sandbox"),
    ("[sandbox.profiles.x]\nreadable = ['~']", 3, "closed to every sandbox"),
    ("[sandbox.profiles.x]\nreadable = ['~/.ssh']", 3, "closed to every sandbox"),
    ("[sandbox.profiles.x]\nreadable = ['~/.config']", 3, "contains"),
    ("[sandbox.profiles.x]\nreadable = ['{config}']", 3, "closed to every sandbox"),
    ("[sandbox.profiles.x]\nwritable = ['{state}']", 3, "closed to every sandbox"),
    ("[sandbox.profiles.x]\nreadable = ['/proc']", 3, "kernel's files"),
    ("[sandbox.profiles.x]\nreadable = ['/tmp']", 3, "cannot be a root"),
    ("[sandbox.profiles.x]\nwritable = ['/usr/lib']", 3, "belongs to the system"),
    ("[sandbox.profiles.x]\nwritable = ['/etc']", 3, "overlaps|belongs"),
    ("[sandbox.profiles.x]\nwritable = ['{project}/.git/hooks']", 3, "overlaps the protected"),
    ("[sandbox.profiles.x]\nwritable = ['{project}/.vscode']", 3, "overlaps the protected"),
    ("[sandbox.profiles.x]\nwritable = ['{project}/file']", 3, "is not a folder"),
    ("[sandbox.profiles.x]\nwritable = ['{project}/link']", 3, "closed to every sandbox"),
    ("[sandbox.profiles.x]\nprocesses = 0", 3, "whole number"),
    ("[sandbox.profiles.x]\nfile_bytes = true", 3, "whole number"),
    ("[sandbox.profiles.x]\nmemory_bytes = 'much'", 3, "whole number"),
    ("[sandbox.profiles.x]\nenvironment = ['A B']", 3, "name of a variable"),
    ("profiles = 3", 2, "sandbox.profiles.NAME"),
]


@pytest.mark.parametrize(("text", "line", "said"), WRONG)
def test_a_mistake_is_named_with_its_line_and_the_strictest_profile_holds(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: int, said: str
) -> None:
    home = tmp_path / "home"
    for name in (".ssh", ".config/gh", "project/.git/hooks", "project/.vscode"):
        (home / name).mkdir(parents=True)
    (home / "project" / "file").touch()
    (home / "project" / "link").symlink_to(home / ".ssh")
    monkeypatch.setenv("HOME", str(home))
    for folder in (places.config, places.state):
        folder.mkdir(parents=True, exist_ok=True)
    text = text.format(config=places.config, state=places.state, project=home / "project")
    text = f"[sandbox]\n{text}\n"
    with pytest.raises(PolicyError, match=said) as problem:
        parse_policy(text)
    assert line in [at for at, _ in problem.value.problems]
    places.policy_file.write_text(text)
    places.policy_file.chmod(0o600)
    policy = PolicyStore(places.policy_file).current().sandbox
    assert policy.agents == READ_ONLY
    assert policy.find("workspace+network") == READ_ONLY
    assert policy.strict is not None
    assert f"policy.toml:{line}: " in policy.strict


def test_a_broken_file_that_names_no_sandbox_gives_agents_none(places: Places) -> None:
    places.config.mkdir(parents=True, exist_ok=True)
    places.policy_file.write_text("[headless]\nallow = 3\n")
    places.policy_file.chmod(0o600)
    assert PolicyStore(places.policy_file).current().sandbox.agents is None


def test_a_file_that_cannot_be_read_gives_agents_the_strictest(places: Places) -> None:
    places.config.mkdir(parents=True, exist_ok=True)
    places.policy_file.write_bytes(b"\xff\xfe")
    places.policy_file.chmod(0o600)
    assert PolicyStore(places.policy_file).current().sandbox.agents == READ_ONLY


@pytest.mark.parametrize(
    ("inner", "outer", "within"),
    [
        (None, None, True),
        (None, WORKSPACE, False),
        (WORKSPACE, None, True),
        (READ_ONLY, WORKSPACE, True),
        (WORKSPACE, READ_ONLY, False),
        (WORKSPACE, WORKSPACE_NETWORK, True),
        (WORKSPACE_NETWORK, WORKSPACE, False),
        (Profile("a", readable=("/data/x",)), Profile("b", readable=("/data",)), True),
        (Profile("a", readable=("/data",)), Profile("b", readable=("/data/x",)), False),
        (Profile("a", readable=("/database",)), Profile("b", readable=("/data",)), False),
        (Profile("a", writable=("/data",)), Profile("b", readable=("/data",)), False),
        (Profile("a", network="loopback"), Profile("b", network="off"), False),
        (Profile("a", environment=("SECRET",)), Profile("b"), False),
        (Profile("a"), Profile("b", processes=10), False),
        (Profile("a", processes=5), Profile("b", processes=10), True),
        (Profile("a", processes=11), Profile("b", processes=10), False),
    ],
)
def test_a_profile_is_within_another_if_it_allows_nothing_more(
    inner: Profile | None, outer: Profile | None, within: bool
) -> None:
    assert is_within(inner, outer) is within


def test_what_a_link_in_a_closed_place_leads_to_is_closed_too(tmp_path: Path) -> None:
    """Who keeps dotfiles in a repository has links in their home folder."""
    home, dotfiles = tmp_path / "home", tmp_path / "home" / "dotfiles"
    (dotfiles / "ssh").mkdir(parents=True)
    (dotfiles / "config" / "gh").mkdir(parents=True)
    (home / ".ssh").symlink_to(dotfiles / "ssh")
    (home / ".config").symlink_to("dotfiles/config")
    (home / "project").mkdir()
    ground = survey(str(home), ())
    for closed in (dotfiles, dotfiles / "ssh", dotfiles / "config", dotfiles / "config" / "gh"):
        assert "closed to every sandbox" in str(find_problem(str(closed), ground, writable=False)), closed
    assert find_problem(str(home / "project"), ground, writable=True) is None
