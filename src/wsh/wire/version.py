"""The version of this build: `toolingVersion` of every tool, `version` of the server. Standard library only."""

from __future__ import annotations

VERSION = "0.1.0"
