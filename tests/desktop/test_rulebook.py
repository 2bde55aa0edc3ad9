"""What the window says of a policy file that was changed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from wsh.desktop.message import WindowNotice
from wsh.desktop.rulebook import Rulebook
from wsh.policy.audit import Audit
from wsh.policy.file.store import PolicyStore
from wsh.wire.system.place import Places, ensure_private


@pytest.mark.parametrize(
    ("count", "named"),
    [
        (2, "added rule0 *, rule1 *."),
        (5, "added rule0 *, rule1 *, rule2 *, rule3 *, rule4 *."),
        (7, "added rule0 *, rule1 *, rule2 *, rule3 *, rule4 * and 2 more."),
    ],
)
def test_the_notice_of_a_changed_policy_file_says_how_many_rules_it_does_not_name(
    places: Places, count: int, named: str
) -> None:
    def write(rules: Sequence[str]) -> None:
        words = ", ".join(f'"{rule}"' for rule in rules)
        ensure_private(places.policy_file.parent)
        places.policy_file.write_text(f"[headless]\nallow = [{words}]\n")
        places.policy_file.chmod(0o600)

    told: list[object] = []
    write([])
    store = PolicyStore(places.policy_file)
    book = Rulebook(store, Audit(places.audit_log), told.append, lambda: None)
    book.heard(store.current())
    store.subscribe(book.heard)
    write([f"rule{number} *" for number in range(count)])
    store.check()
    (notice,) = [each.text for each in told if isinstance(each, WindowNotice)]
    assert notice == f"The policy file was changed outside this window: {named}"
