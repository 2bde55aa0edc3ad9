"""What can go wrong in a workspace tool, with the public codes of the tool contract.

The codes are a closed table (`wire.tool`); a fact that callers may want goes into the details, never into a new code.
"""

from __future__ import annotations

from typing import ClassVar

from wsh.wire import tool
from wsh.wire.json.object import JsonObject
from wsh.wire.tool import ToolFailure


class ToolError(ToolFailure):
    """Root of the failures of workspace tools. Each class has one code of the public table."""

    CODE: ClassVar[str] = tool.INTERNAL

    def __init__(self, message: str, *, hint: str | None = None, **details: object) -> None:
        super().__init__(self.CODE, message, hint=hint, **details)


class InvalidArguments(ToolError):
    CODE = tool.INVALID_REQUEST


class NothingThere(ToolError):
    CODE = tool.NOT_FOUND


class NoIndex(ToolError):
    CODE = tool.NO_INDEX

    def __init__(self, workspace: str, mode: str) -> None:
        build = f'index_build with {{"workspace": "{workspace}", "mode": "{mode}"}}'
        super().__init__(
            f"There is no {'' if mode == 'all' else mode + ' '}index of {workspace}.",
            hint=f"Run {build}, or `wsh index build` in that folder; then search again.",
            workspace=workspace,
            mode=mode,
        )


class ToolCapabilityMissing(ToolError):
    CODE = tool.CAPABILITY_MISSING


class ToolTimeout(ToolError):
    CODE = tool.TOOL_TIMEOUT

    def __init__(self, what: str, timeout_ms: int, hint: str | None = None) -> None:
        super().__init__(
            f"{what} did not end within {timeout_ms} ms and was stopped.",
            hint=hint or "Narrow the request, or allow more time with timeoutMs.",
            timeoutMs=timeout_ms,
        )


class Forbidden(ToolError):
    CODE = tool.FORBIDDEN


class DownloadVerifyFailed(ToolError):
    CODE = tool.DOWNLOAD_VERIFY_FAILED


class ArchiveUnsafe(ToolError):
    CODE = tool.ARCHIVE_UNSAFE


class ArchiveTooLarge(ToolError):
    CODE = tool.ARCHIVE_TOO_LARGE


class NoRoom(ToolError):
    """The disk of the index is full."""

    CODE = tool.DISK_FULL


class IndexBroken(ToolError):
    """The index on disk cannot be used: corrupt, or of another version. Callers rebuild it and say so."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(
            f"The index cannot be used ({reason}: {detail}).",
            hint="Run index_build; it makes a new one.",
            reason=reason,
        )
        self.reason = reason


_BY_CODE: dict[str, type[ToolError]] = {
    cls.CODE: cls for cls in (InvalidArguments, NothingThere, Forbidden, DownloadVerifyFailed, ArchiveUnsafe, NoRoom)
}


def from_payload(payload: JsonObject) -> ToolError:
    """The error that a child process put on the wire."""
    details = {key: value for key, value in payload.items() if key not in ("code", "message", "hint")}
    cls = _BY_CODE.get(payload["code"], ToolError)
    return cls(payload["message"], hint=payload.get("hint"), **details)
