"""A store of transcripts: one whose file was damaged begins anew, whatever is asked of it first, and a long one takes little memory."""

from __future__ import annotations

import _sqlite3
import ctypes
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from wsh.workspace.search.query import parse_query
from wsh.workspace.transcript.transcript import Transcript, TranscriptFilter, TranscriptStore

NOW = 1_700_000_000.0


def fill(store: TranscriptStore) -> None:
    chance = random.Random(3)
    words = [f"word{number}" for number in range(400)]
    store.put(
        Transcript(f"key{number}", "shell", "make", " ".join(chance.choices(words, k=200)), "/", NOW + number, 0, 5)
        for number in range(120)
    )


def search(store: TranscriptStore) -> None:
    for found in store.find_words(parse_query("word7"), TranscriptFilter(), 20, NOW, "/"):
        store.render(found, [], 2, explain=False)


ASKED: dict[str, Callable[[TranscriptStore], object]] = {
    "search": search,
    "status": TranscriptStore.status,
    "finished": TranscriptStore.list_finished,
    "expire": TranscriptStore.expire,
    "put": fill,
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that was written and a log behind it, as a power cut leaves them."""
    folder = tmp_path_factory.mktemp("sound")
    store = TranscriptStore(folder / "transcripts.db", 10_000)
    fill(store)
    for suffix in ("", "-wal"):
        if os.path.exists(f"{store.path}{suffix}"):
            shutil.copy(f"{store.path}{suffix}", folder / f"copy{suffix}")
    store.close()
    return folder


@pytest.mark.parametrize("first", ASKED)
def test_a_damaged_store_begins_anew(sound: Path, tmp_path: Path, first: str) -> None:
    chance = random.Random(first)
    for number in range(8):
        path = tmp_path / f"{number}" / "transcripts.db"
        path.parent.mkdir()
        shutil.copy(sound / "transcripts.db", path)  # checkpointed
        size = path.stat().st_size
        if number % 2:
            os.truncate(path, chance.randrange(size))
        else:
            with path.open("r+b") as file:
                for _ in range(3):
                    file.seek(chance.randrange(1, size // 4096) * 4096)
                    file.write(bytes(4096))
        store = TranscriptStore(path, 10_000)
        try:
            ASKED[first](store)
            for ask in ASKED.values():
                ask(store)
            search(store)
        finally:
            store.close()


def test_the_memory_of_a_store_does_not_grow_with_its_file(tmp_path: Path) -> None:
    memory_used = ctypes.CDLL(_sqlite3.__file__).sqlite3_memory_used
    memory_used.restype = ctypes.c_int64
    store = TranscriptStore(tmp_path / "transcripts.db", 10_000)
    before = memory_used()
    for first in range(0, 1000, 50):
        store.put(
            Transcript(f"key{number}", "shell", "make", " ".join(f"w{number * k}" for k in range(200)), "/", NOW)
            for number in range(first, first + 50)
        )
        search(store)
    assert (status := store.status())["documents"] == 1000 and status["sizeBytes"] > 4_000_000
    assert memory_used() - before < 1_500_000
    store.close()
