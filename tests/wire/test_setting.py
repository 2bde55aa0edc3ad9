from __future__ import annotations

from pathlib import Path

import pytest

from wsh.wire.setting import SETTINGS, SettingError, load


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[session]\nrows = 30\ncols = 90\nretention_s = 5\n")
    environ = {"WSH_SESSION_COLS": "91", "WSH_SESSION_ROWS": "31"}
    settings = load(file, environ, {"session.rows": 32})
    assert (settings.get_int("session.rows"), settings.origins["session.rows"]) == (32, "command line")
    assert (settings.get_int("session.cols"), settings.origins["session.cols"]) == (
        91,
        "environment (WSH_SESSION_COLS)",
    )
    assert (settings.get_int("session.retention_s"), settings.origins["session.retention_s"]) == (5, str(file))
    assert settings.origins["server.bind"] == "default"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[session]\nrows = 'x'", "session.rows must be a whole number"),
        ("[session]\nrows = 0", "between 1 and 1000"),
        ("[session]\nlines = 3", "there is no setting session.lines"),
        ("rows = 3", "must be a table"),
        ("[session", "Expected"),
        ("[session]\nsize_policy = 'big'", "must be one of typed, smallest, latest, fixed"),
        ("[journal]\nenabled = 1", "must be true or false"),
    ],
)
def test_a_bad_file_is_refused_with_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(SettingError) as caught:
        load(file, {})
    assert said in str(caught.value) and str(file) in str(caught.value)


def test_every_default_is_within_its_own_limits() -> None:
    assert len({s.key for s in SETTINGS}) == len(SETTINGS)
    assert load(None, {}, {s.key: s.default for s in SETTINGS}).values == load(None, {}).values
