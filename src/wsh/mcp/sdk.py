"""Makes the SDK quick to import: only what a server uses, and models that are built when they are used first.

Imported as usual it takes half of a new server's time to its first answer: it brings its client, an HTTP library and hundreds of models
of three revisions of the protocol.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import cast

from pydantic import BaseModel, ConfigDict, TypeAdapter

from wsh.wire.system.package import open_package


def prepare() -> None:
    """To be called before anything of the SDK is imported. Idempotent; what somebody imported before us stays as it is."""
    open_package("mcp.server")
    _import_events()
    if "mcp_types" in sys.modules:
        return
    usual, usual_adapter = BaseModel.model_config, TypeAdapter._defer_build
    BaseModel.model_config = ConfigDict(**usual, defer_build=True)
    TypeAdapter._defer_build = property(lambda adapter: True)  # type: ignore[assignment]  # no public way for adapters of others
    try:
        import mcp_types.methods  # noqa: F401  # its models are made here, unbuilt
    finally:
        BaseModel.model_config = usual
        TypeAdapter._defer_build = usual_adapter  # type: ignore[method-assign]  # as it was


def _import_events() -> None:
    """Import the library for event streams. It would import uvicorn's command line, to change a class that we have no use for."""
    main = "uvicorn.main"
    if main in sys.modules:
        return
    sys.modules[main] = cast(ModuleType, None)  # as one that is not installed
    try:
        import sse_starlette  # noqa: F401  # imported for the SDK
    finally:
        del sys.modules[main]
