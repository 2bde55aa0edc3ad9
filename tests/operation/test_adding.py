"""docs/architecture.md, where it adds a capability: the declaration and one line per door, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.http.talk import talk
from tests.support.serving import running_server
from wsh.wire.system.place import Places

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()


def test_one_declaration_and_one_line_per_door_are_a_capability(places: Places, tmp_path: Path) -> None:
    section = PAGE.partition("### Adding a capability\n")[2].partition("\n## ")[0]
    declaration, lines = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    route, method = [line for line in lines.splitlines() if not line.startswith("#")]
    startup = [
        declaration,
        "from wsh.http.route import operation_route",
        "from wsh.http.ws import methods",
        "from wsh.http.ws.methods import call_by_name",
        "from wsh.http.route.offer import offer",
        f"operation_route.ROUTES += ({route},)",
        f"methods.METHODS['count_lines'] = {method}",
    ]
    (tmp_path / "sitecustomize.py").write_text("\n".join(startup))
    with running_server(places, environ={"PYTHONPATH": str(tmp_path)}) as server:
        server.request("POST", "/sessions", {"name": "s", "command": "seq 100; exec cat"})
        server.request("GET", "/sessions/s/idle?text=100&last_generation=0&max_wait_ms=60000")
        found = server.get("/sessions/s/line_count")
        assert found["lines"] > 100
        with talk(server, "/ws/json") as client:
            assert client.ask("count_lines", session="s") == found
        described = server.get("/openapi.json")["paths"]["/sessions/{name}/line_count"]["get"]
        assert described["summary"] == "How many lines it has printed."
        assert server.request("GET", "/sessions/none/line_count").code == "session_not_found"
