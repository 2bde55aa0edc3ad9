"""Write src/wsh/terminal/engine/abi.py: pyghostty's declarations in cffi's precompiled form.

pyghostty parses its C declarations at every import, and every new type name once more, which costs a starting server
0.6 s. cffi can write the same knowledge down once ("out-of-line ABI mode"). Run this after a change of the pinned
pyghostty; a test compares the result with what is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import tempfile
from pathlib import Path

from cffi import FFI

TARGET = Path(__file__).parent.parent / "src" / "wsh" / "terminal" / "engine" / "abi.py"

# cffi cannot pass unions by value; a struct of the same layout can be passed in place of one.
TWINS = """
typedef struct { uint16_t x; uint32_t y; uint64_t _pad; } GhosttyPointValueS;
typedef struct { GhosttyPointTag tag; GhosttyPointValueS value; } GhosttyPointS;
"""


def read_declarations() -> str:
    """The C declarations that the installed pyghostty carries, without importing it."""
    spec = importlib.util.find_spec("pyghostty")
    assert spec is not None and spec.submodule_search_locations
    namespace: dict[str, str] = {}
    exec((Path(spec.submodule_search_locations[0]) / "_cdef.py").read_text(), namespace)
    return namespace["CDEF"]


def make_module() -> str:
    declarations = read_declarations()
    builder = FFI()
    builder.set_source("abi", None)
    builder.cdef(declarations)
    builder.cdef(TWINS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "abi.py"
        builder.emit_python_code(str(path))
        text = path.read_text()
    text = re.sub(r"^# auto-generated file\n", "", text).replace("FFI('abi'", "FFI('wsh.terminal.engine.abi'")
    digest = hashlib.sha256(declarations.encode()).hexdigest()
    head = '"""The C library\'s declarations, precompiled by scripts/generate_terminal_abi.py. Not to be edited."""\n\n'
    return f'{head}{text.rstrip()}\n\nDECLARATIONS = "{digest}"\n'


if __name__ == "__main__":
    TARGET.write_text(make_module())
    sys.stdout.write(f"wrote {TARGET}\n")
