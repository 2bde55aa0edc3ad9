"""One face for the page and the window: the tokens both are made from.

`tokens.json` is the only place where a colour, a size or a duration is written. `css()` is what the page uses, `load()` what the window's
singleton is filled with. Standard library only.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, cast


def load() -> dict[str, Any]:
    return cast(
        "dict[str, object]", json.loads((resources.files("wsh.look") / "tokens.json").read_text(encoding="utf-8"))
    )


def css() -> str:
    """Custom properties: dark by default, light where the system or the page says so."""
    tokens = load()
    common = [f"--space-{name}: {value}px;" for name, value in tokens["spacing"].items()]
    common.append(f"--radius: {tokens['radius']}px;")
    common += [f"--type-{name}: {value}px;" for name, value in tokens["type"].items()]
    common += [f"--duration-{name}: {value}ms;" for name, value in tokens["duration"].items()]
    common += [f"--font-{name}: {value};" for name, value in tokens["font"].items()]

    def theme(name: str) -> str:
        return "\n  ".join(f"--{key.replace('_', '-')}: {value};" for key, value in tokens[name].items())

    return (
        "/* Made from src/wsh/look/tokens.json by `python -m wsh.look`; do not edit. */\n"
        f":root {{\n  {chr(10).join(common).replace(chr(10), chr(10) + '  ')}\n  color-scheme: dark;\n  {theme('dark')}\n}}\n"
        f":root[data-theme='light'] {{\n  color-scheme: light;\n  {theme('light')}\n}}\n"
        "@media (prefers-color-scheme: light) {\n"
        f":root:not([data-theme='dark']) {{\n  color-scheme: light;\n  {theme('light')}\n}}\n}}\n"
    )
