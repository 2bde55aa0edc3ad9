"""The scorecard's page is made from its data, and says of every miss whose doing it is."""

from __future__ import annotations

import json

from bench.scorecard import page


def test_the_page_is_what_its_data_say_and_explains_every_miss() -> None:
    data = json.loads(page.DATA.read_text(encoding="utf-8"))
    assert page.PAGE.read_text(encoding="utf-8") == page.render(data)
    assert "not explained yet" not in page.render(data)
    reasons = page.load_reasons()
    for suite, found in data["suites"].items():
        for case in found["engines"]["wsh"]["missed"]:
            assert page.find_reason(reasons, suite, case) is not None, (suite, case)


def test_at_least_forty_programs_and_twelve_shells_hold() -> None:
    programs = json.loads(page.DATA.read_text(encoding="utf-8"))["programs"]
    held = [found["kind"] for found in programs if found["holds"] in ("yes", "output")]
    assert held.count("full screen") >= 40
    assert held.count("shell") >= 12
