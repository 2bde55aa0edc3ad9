"""Makes the SDK quick to import: only what a server uses, and models that are built when they are used first.

Imported as usual it takes half of a new server's time to its first answer: it brings its client, an HTTP library and hundreds of models
of three revisions of the protocol.
"""

from __future__ import annotations

import sys

from pydantic import BaseModel, ConfigDict

from wsh.wire.system.package import open_package


def prepare() -> None:
    """To be called before anything of the SDK is imported. Idempotent; what somebody imported before us stays as it is."""
    open_package("mcp.server")
    if "mcp_types" in sys.modules:
        return
    usual = BaseModel.model_config
    BaseModel.model_config = ConfigDict(**usual, defer_build=True)
    try:
        import mcp_types.methods  # noqa: F401  # its models are made here, unbuilt
    finally:
        BaseModel.model_config = usual
