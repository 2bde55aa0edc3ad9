"""Agents' sessions: quiet defaults, visible and overridable, with the PATH of the user's login shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.session.running import run_with_registry
from tests.support.session.shells import AGENT, make_home, run, text_of
from tests.support.waiting import HANG_S, until
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.shell import login_path
from wsh.session.shell.login_path import LoginPath, merge
from wsh.session.spec import SessionSpec
from wsh.wire.system.place import Places


@pytest.mark.parametrize(
    ("ours", "login", "result"),
    [
        ("/bin:/usr/bin", "/home/me/bin:/usr/bin:/bin", "/home/me/bin:/usr/bin:/bin"),
        ("/venv/bin:/bin", "/home/me/bin:/bin", "/venv/bin:/bin:/home/me/bin"),
        ("/bin", "/bin", None),
        ("/venv:/bin", "/bin", None),
        ("/bin", "", None),
        ("", "/a:/b", "/a:/b"),
    ],
)
def test_paths_are_joined_without_losing_the_callers_order(ours: str, login: str, result: str | None) -> None:
    assert merge(ours, login) == result


async def open_for_agent(registry: SessionRegistry, env: dict[str, str], base: dict[str, str]) -> Session:
    return await registry.open_session(
        SessionSpec(command="bash", cwd="/", env=env, base_env=base, actor=AGENT, agent_defaults=True)
    )


def test_an_agents_shell_has_quiet_defaults_and_the_login_path(places: Places) -> None:
    home = make_home(places.state.parent, bash_profile="echo noise; PATH=$HOME/bin:/usr/bin:/bin\n")
    base = {"HOME": home, "PATH": "/usr/bin:/bin", "SHELL": "/bin/bash", "PAGER": "less"}

    async def body(registry: SessionRegistry) -> None:
        session = await open_for_agent(registry, {}, base)
        shown = text_of(await run(session, "echo $PAGER $GIT_PAGER $TERM $PATH; locale charmap"))
        assert shown == f"cat cat xterm-256color {home}/bin:/usr/bin:/bin\nUTF-8"
        assert (await session.look()).to_wire()["agent_defaults"]["PAGER"] == "cat"
        chosen = await open_for_agent(registry, {"PAGER": "more", "PATH": "/bin"}, base)
        assert text_of(await run(chosen, "echo $PAGER $PATH")) == "more /bin"
        assert "PAGER" not in chosen.agent_defaults
        person = await registry.open_session(SessionSpec(command="bash", cwd="/", base_env=base))
        assert text_of(await run(person, "echo $PAGER $PATH")) == "less /usr/bin:/bin"
        assert person.agent_defaults == {}

    run_with_registry(places, body, session__login_path_wait_ms=60_000)


def test_a_login_shell_that_hangs_delays_no_session_for_long(places: Places) -> None:
    home = make_home(places.state.parent, bash_profile="sleep 6000\n")
    base = {"HOME": home, "PATH": "/usr/bin:/bin", "SHELL": "/bin/bash"}

    async def body(registry: SessionRegistry) -> None:
        session = await open_for_agent(registry, {}, base)
        assert text_of(await run(session, "echo $PATH")) == "/usr/bin:/bin"

    run_with_registry(places, body, session__login_path_wait_ms=10)


async def test_a_login_shell_that_did_not_answer_is_asked_again_later(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(
        make_home(places.state.parent, bash_profile="[ -e ~/calm ] || sleep 6000; PATH=$HOME/bin:/usr/bin:/bin\n")
    )
    environ = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    monkeypatch.setattr(login_path, "_DEADLINE_S", 0.05)
    monkeypatch.setattr(login_path, "_AGAIN_S", 0.0)
    paths = LoginPath(HANG_S)
    try:
        assert await paths.extend("/bin/bash", environ) is None
        (home / "calm").touch()
        monkeypatch.setattr(login_path, "_DEADLINE_S", HANG_S)
        await until(lambda: not paths._asked, "the time to ask again")
        assert await paths.extend("/bin/bash", environ) == f"{home}/bin:/usr/bin:/bin"
        monkeypatch.setattr(login_path, "_ask", None)  # what was answered is remembered
        assert await paths.extend("/bin/bash", environ) == f"{home}/bin:/usr/bin:/bin"
    finally:
        await paths.aclose()
