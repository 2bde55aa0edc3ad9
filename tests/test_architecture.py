"""The drawing in docs/architecture.md against the imports: a room imports what its row says, and nothing else. Names are unique, folders small."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import grimp

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
SOURCE = Path(__file__).parents[1] / "src"


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


def test_every_public_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted((SOURCE / "wsh").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


LARGEST_FOLDER = 16
LARGE_FOR_A_REASON = {
    "src/wsh": "one folder for each room; each is in the drawing",
    "src/wsh/cli": "one command in each file, found by its name",
    "src/wsh/operation": "one noun in each file; the catalog lists the folder",
    "tests": "one folder for each room",
    "tests/cli": "one command in each file",
    "tests/support": "one folder for each room, and what all of them use",
    "tests/web": "one part of the page in each file",
    "tests/bridge/fixtures": "one frame in each file",
}


def test_no_folder_is_too_large_to_be_looked_through() -> None:
    root = PAGE.parents[1]
    files = [path for top in ("src/wsh", "tests") for path in (root / top).rglob("*")]
    entries = Counter(
        str(path.parent.relative_to(root))
        for path in files
        if not path.name.startswith("__") and not {"__pycache__", "static", "node_modules"} & set(path.parts)
    )
    large = {folder: count for folder, count in entries.items() if count > LARGEST_FOLDER}
    assert set(large) <= set(LARGE_FOR_A_REASON), large
