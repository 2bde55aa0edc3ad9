"""The name of a JSON object whose fields are not known to the type checker: where bytes become types, and back."""

from __future__ import annotations

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
