"""The examples of docs/client.md run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.serving import running_server
from wsh.wire.system.place import Places

DOC = Path(__file__).parents[2] / "docs" / "client.md"


def test_the_examples_print_what_they_should(places: Places) -> None:
    examples = re.findall(r"```python\n(.*?)```", DOC.read_text(), re.DOTALL)
    assert len(examples) == 2
    with running_server(places):
        said = [
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
            for code in examples
        ]
    assert said[0].split() == ["42", "1"]
    lines = said[1].splitlines()
    assert lines[:2] == ["text", "late after 100"]
