"""Write docs/rooms.md: what the rooms of `src/wsh` offer each other, read from their imports. `make docs` runs it.

A name stands there if another room imports it, with the first sentence of its docstring.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "wsh"
PAGE = ROOT / "docs" / "rooms.md"

HEAD = """\
# What the rooms offer each other

Made by `scripts/generate_rooms.py` from the imports: every name that one room takes from another, who takes it, and what its docstring says first.
Every room may use `wire`, so names of `wire` are not listed. [Architecture](architecture.md) has the drawings.
"""

Uses = dict[str, dict[tuple[str, str], set[str]]]
"""By room: module and name, and the rooms that import it."""


def read_uses() -> Uses:
    uses: Uses = defaultdict(lambda: defaultdict(set))
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("wsh."):
                other = node.module.split(".")[1]
                if other not in (room, "wire"):
                    for alias in node.names:
                        uses[other][node.module, alias.name].add(room)
    return uses


def find_summary(module: str, name: str) -> str:
    """The first sentence of a name's docstring, or nothing."""
    tree = _parse(module)
    inner = _parse(f"{module}.{name}")
    if inner is not None:
        return _first_sentence(ast.get_docstring(inner))
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return _first_sentence(ast.get_docstring(node))
        if isinstance(node, ast.ImportFrom) and node.module and any((a.asname or a.name) == name for a in node.names):
            return find_summary(node.module, name) if node.module.startswith("wsh.") else ""
    return ""


def _parse(module: str) -> ast.Module | None:
    base = SOURCE.parent.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.exists():
            return ast.parse(path.read_text(encoding="utf-8"))
    return None


def _first_sentence(text: str | None) -> str:
    flat = " ".join((text or "").split("\n\n")[0].split()).replace("|", "\\|")
    return re.split(r"(?<=[.!?]) ", flat)[0]


def render() -> Iterator[str]:
    yield HEAD
    for room, names in sorted(read_uses().items()):
        yield f"## `{room}`\n\n| name | used by | |\n|---|---|---|"
        for (module, name), users in sorted(names.items()):
            shown = ".".join([*module.split(".")[2:], name])
            yield f"| `{shown}` | {', '.join(sorted(users))} | {find_summary(module, name)} |"
        yield ""


def main() -> int:
    text = "\n".join(render())
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        print("docs/rooms.md is stale: run python scripts/generate_rooms.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
