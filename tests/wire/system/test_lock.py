from __future__ import annotations

import os
import threading
from pathlib import Path

from wsh.wire.system.lock import drop_lock, take_lock


def test_a_lock_has_one_holder_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    held = take_lock(path, wait=False)
    assert held is not None and take_lock(path, wait=False) is None
    drop_lock(path, held)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_a_dead_holder_left_is_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    path.write_text("")
    held = take_lock(path, wait=False)
    assert held is not None
    drop_lock(path, held)


def test_those_who_waited_while_the_file_was_removed_still_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(300):
            held = take_lock(path, wait=True)
            assert held is not None
            inside.append(held)
            most.append(len(inside))
            os.sched_yield()
            inside.remove(held)
            drop_lock(path, held)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(most) == 1800 and set(most) == {1}
    assert list(tmp_path.iterdir()) == []
