"""What an agent reads with the workspace tools: no more than a session of its own could, and never wsh's own files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp.host import HttpHost, failure, structured
from tests.support.serving import Reply, RunningServer, running_server
from wsh.wire.system.place import Places, find_places
from wsh.wire.token_file import TokenFile

KEY = "quokkakey-of-the-person"
PROFILES = ("workspace", "read-only")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with a key, wsh's own folders and a project in it."""
    folder = tmp_path_factory.mktemp("reach").resolve() / "home"
    for name in (".ssh", ".config", ".local/state", ".runtime", "project", "other"):
        (folder / name).mkdir(parents=True, mode=0o700)
    (folder / ".ssh" / "id_ed25519").write_text(f"{KEY}\n")
    (folder / "project" / "notes.txt").write_text("wombat notes\n")
    (folder / "other" / "plan.txt").write_text("wombat plan\n")
    (folder / ".profile.md").write_text("wombat profile\n")
    return folder


@pytest.fixture(scope="module")
def places(home: Path) -> Iterator[Places]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(home / ".runtime"))
        patch.setenv("XDG_STATE_HOME", str(home / ".local/state"))
        patch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
        yield find_places()


@pytest.fixture(scope="module")
def shared(places: Places, home: Path) -> Iterator[RunningServer]:
    with running_server(places, environ={"HOME": str(home)}) as server:
        server.extra["agent"] = TokenFile(places.tokens).add_agent("helper")
        (places.config / "own.txt").write_text(f"{KEY} of wsh\n")
        (places.state / "kept.txt").write_text("kept\n")
        yield server


@pytest.fixture
def server(shared: RunningServer) -> Iterator[RunningServer]:
    """Without a policy before and after."""
    shared.places.policy_file.unlink(missing_ok=True)
    yield shared
    shared.places.policy_file.unlink(missing_ok=True)


def hold_agents(server: RunningServer, profile: str, more: str = "") -> None:
    server.places.policy_file.write_text(f'[sandbox]\nagents = "{profile}"\n{more}')
    server.places.policy_file.chmod(0o600)


def call(server: RunningServer, tool: str, arguments: dict[str, Any], *, person: bool = False) -> Reply:
    return server.request("POST", f"/workspace/{tool}", arguments, token="" if person else server.extra["agent"])


def show(server: RunningServer, workspace: Path | str, path: str, *, person: bool = False) -> Reply:
    return call(server, "show_file", {"workspace": str(workspace), "path": path}, person=person)


def is_refused(reply: Reply) -> bool:
    assert KEY not in reply.body.decode()
    if reply.status == 200:
        return False
    assert (reply.status, reply.code) == (403, "sandbox_refused"), reply.body
    assert reply.json["error"]["hint"]
    return True


def own_files(places: Places) -> list[tuple[Path, str]]:
    return [
        (places.config, "tokens.json"),
        (places.config.parent, "wsh/tokens.json"),
        (places.state, "kept.txt"),
        (places.runtime, "default.keeper.secret"),
    ]


@pytest.mark.parametrize("profile", ["off", *PROFILES])
def test_an_agent_never_reads_the_files_of_wsh_and_a_person_does(server: RunningServer, profile: str) -> None:
    hold_agents(server, profile)
    for workspace, path in own_files(server.places):
        assert is_refused(show(server, workspace, path)), (workspace, path)
        assert show(server, workspace, path, person=True).status == 200
    assert is_refused(call(server, "index_build", {"workspace": str(server.places.config)}))
    assert is_refused(call(server, "search", {"workspace": str(server.places.config), "query": "quokkakey"}))
    assert is_refused(call(server, "index_status", {"workspace": str(server.places.state)}))
    assert is_refused(call(server, "workspace_status", {"workspace": str(server.places.runtime)}))
    assert is_refused(show(server, "/proc/self", "environ")), "of the server itself"


def test_the_index_of_a_folder_above_them_leaves_the_files_of_wsh_out(server: RunningServer, home: Path) -> None:
    own = server.places.config
    inside = call(server, "index_build", {"workspace": str(own), "paths": ["own.txt"]}, person=True)
    assert inside.status == 200, inside.body
    found = call(server, "search", {"workspace": str(own), "query": "quokkakey", "mode": "prose"}, person=True)
    assert [hit["path"] for hit in found.json["hits"]] == ["own.txt"]
    hit = {"workspace": str(own), "id": found.json["hits"][0]["id"]}
    assert call(server, "show_file", hit, person=True).status == 200
    assert is_refused(call(server, "show_file", hit))
    above = {"workspace": str(own.parent)}
    assert is_refused(call(server, "index_build", above | {"paths": ["wsh/own.txt"]}))
    for person in (True, False):
        built = call(server, "index_build", above, person=person)
        assert built.status == 200, server.output.read_text()[-3000:]
        assert built.json["files"]["listed"] == 0
        for match in ("words", "literal", "regex"):
            asked = above | {"query": "quokkakey", "match": match, "mode": "prose"}
            assert call(server, "search", asked, person=person).json["hits"] == []
    assert call(server, "index_status", above).json["stale"]["added"] == 0


def test_without_a_sandbox_an_agent_reads_everything_else(server: RunningServer, home: Path) -> None:
    assert show(server, home / ".ssh", "id_ed25519").json["text"] == f"{KEY}\n"
    assert show(server, home, "project/notes.txt").status == 200


@pytest.mark.parametrize("profile", PROFILES)
def test_an_agent_in_a_sandbox_reads_what_a_session_could(server: RunningServer, home: Path, profile: str) -> None:
    hold_agents(server, profile)
    for workspace, path in (
        (home / ".ssh", "id_ed25519"),
        (home, ".ssh/id_ed25519"),
        (home, "project/notes.txt"),
        ("/", "usr/bin/env"),
        ("/etc", "shadow"),
        ("/etc/ssh", "sshd_config"),
        ("/tmp", "any"),
    ):
        if Path(workspace).is_dir():
            assert is_refused(show(server, workspace, path)), (workspace, path)
    for tool, more in (("index_build", {}), ("search", {"query": "quokkakey"}), ("index_status", {})):
        assert is_refused(call(server, tool, {"workspace": str(home / ".ssh")} | more))
    project = {"workspace": str(home / "project")}
    assert show(server, home / "project", "notes.txt").json["text"] == "wombat notes\n"
    assert call(server, "index_build", project).status == 200
    found = call(server, "search", project | {"query": "wombat", "mode": "prose"})
    assert [hit["path"] for hit in found.json["hits"]] == ["notes.txt"]
    assert show(server, "/etc", "passwd").status == 200, "a folder of the system"
    (home / "project" / "link").unlink(missing_ok=True)
    (home / "project" / "link").symlink_to(home / ".ssh" / "id_ed25519")
    assert show(server, home / "project", "link").code == "forbidden", "outside the workspace"
    transcripts = call(server, "search", {"workspace": str(home), "query": "wombat", "mode": "transcripts"})
    assert transcripts.status == 200, "what was printed needs no folder"
    assert show(server, home / ".ssh", "id_ed25519", person=True).status == 200


def test_a_profile_and_the_list_of_folders_say_which_workspaces_there_are(server: RunningServer, home: Path) -> None:
    folders = f'folders = ["{home}/project"]\n'
    hold_agents(server, "more", f'{folders}[sandbox.profiles.more]\nreadable = ["{home}/.profile.md"]\n')
    assert show(server, home / "project", "notes.txt").status == 200
    refused = show(server, home / "other", "plan.txt")
    assert is_refused(refused) and str(home / "project") in refused.json["error"]["message"]
    hold_agents(server, "more", f'{folders}[sandbox.profiles.more]\nreadable = ["{home}/other"]\n')
    assert show(server, home / "other", "plan.txt").status == 200


def test_a_model_is_refused_over_mcp_whatever_its_token(server: RunningServer, home: Path) -> None:
    hold_agents(server, "workspace")
    for token in (server.extra["agent"], server.token):
        with HttpHost(f"{server.url}/mcp", token) as host:
            host.initialize()
            asked = {"workspace": str(home / ".ssh"), "path": "id_ed25519"}
            told = failure(host.call("show_file", asked))
            assert (told["code"], told["reason"]) == ("FORBIDDEN", "sandbox_refused")
            assert told["hint"] and KEY not in str(told)
            seen = structured(host.call("show_file", {"workspace": str(home / "project"), "path": "notes.txt"}))
            assert seen["text"] == "wombat notes\n"
