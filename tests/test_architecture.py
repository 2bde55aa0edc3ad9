"""The drawing in docs/architecture.md against the imports: a room imports what its row says, and nothing else."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import grimp

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


def _read_drawing() -> dict[str, set[str]]:
    drawing: dict[str, set[str]] = {}
    table = PAGE.read_text().partition("| room | does | imports |\n|---|---|---|\n")[2].partition("\n\n")[0]
    for line in table.splitlines():
        names, _, imports = [cell.strip() for cell in line.strip("|").rsplit("|", 2)]
        for name in re.findall(r"`(\w+)(?:/|\.py)", names):
            drawing[name] = set(re.findall(r"\w+", imports)) - {"nobody"}
    return drawing


def _read_imports() -> dict[str, set[str]]:
    graph = grimp.build_graph("wsh")
    found: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules - {"wsh"}:
        room = module.split(".")[1]
        for imported in graph.find_modules_directly_imported_by(module) - {"wsh"}:
            found[room].add(imported.split(".")[1])
        found[room].discard(room)
    return found


def test_every_room_imports_exactly_what_the_drawing_says() -> None:
    drawing, imports = _read_drawing(), _read_imports()
    assert set(drawing) == set(imports)
    for room, allowed in drawing.items():
        assert imports[room] - {"wire"} == allowed - {"wire"}, room


def test_any_stays_where_bytes_become_types() -> None:
    """Fewer lines than this name it; whoever needs more finds a type for others."""
    source = PAGE.parents[1] / "src"
    lines = [
        f"{path.relative_to(source)}:{number}"
        for path in sorted(source.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\bAny\b", line)
    ]
    assert len(lines) < 300, lines
