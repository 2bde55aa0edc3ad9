"""From an error to the HTTP wire: one status per code, one shape for all."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, ClassVar

from pydantic import ValidationError

from wsh.wire.error import InternalError, InvalidFormat, InvalidRequest, WshError
from wsh.wire.system.shortage import find_shortage
from wsh.wire.tool import ToolFailure

if TYPE_CHECKING:
    from wsh.wire.error import Blame

log = logging.getLogger("wsh.http")

STATUS: dict[str, int] = {
    "invalid_request": 400,
    "invalid_overlay": 400,
    "invalid_panel": 400,
    "invalid_format": 400,
    "invalid_tag": 400,
    "invalid_session_name": 400,
    "invalid_env": 400,
    "invalid_key": 400,
    "invalid_pattern": 400,
    "program_not_found": 400,
    "cwd_not_found": 400,
    "not_focusable": 400,
    "auth_required": 401,
    "auth_invalid": 403,
    "origin_not_allowed": 403,
    "forbidden": 403,
    "sandbox_unavailable": 403,
    "sandbox_refused": 403,
    "not_found": 404,
    "session_not_found": 404,
    "overlay_not_found": 404,
    "panel_not_found": 404,
    "no_sessions": 404,
    "command_not_found": 404,
    "approval_not_found": 404,
    "host_not_found": 404,
    "method_not_allowed": 405,
    "idle_timeout": 408,
    "request_timeout": 408,
    "conflict": 409,
    "approval_settled": 409,
    "approval_changed": 409,
    "confirmation_needed": 409,
    "session_name_conflict": 409,
    "already_in_alt_screen": 409,
    "not_in_alt_screen": 409,
    "session_exited": 409,
    "session_taken": 409,
    "line_in_use": 409,
    "hidden_prompt": 409,
    "input_captured": 409,
    "idle_superseded": 409,
    "too_large": 413,
    "unsupported_media_type": 415,
    "host_not_allowed": 421,
    "resource_limit_reached": 429,
    "too_many_attempts": 429,
    "internal_error": 500,
    "session_create_failed": 500,
    "keeper_gone": 500,
    "keeper_incompatible": 500,
    "snapshot_corrupt": 500,
    "snapshot_not_possible": 500,
    "capability_missing": 501,
    "max_sessions_reached": 503,
    "shutting_down": 503,
    "server_gone": 503,
    "server_silent": 503,
    "no_descriptors": 503,
    "host_unreachable": 503,
    "disk_full": 507,
    "unknown_method": 400,
    "session_required": 400,
    "invalid_host_name": 400,
}
"""The HTTP status of each code. A code that is not here is a fault of ours: 500."""


class AuthRequired(WshError):
    code = "auth_required"
    blame: ClassVar[Blame] = "caller"

    def __init__(self) -> None:
        super().__init__(
            "This needs a token.",
            hint="Send 'Authorization: Bearer TOKEN'; `wsh token` makes one of the owner's.",
        )


class AuthInvalid(WshError):
    code = "auth_invalid"
    blame: ClassVar[Blame] = "caller"

    def __init__(self, what: str = "token") -> None:
        super().__init__(
            f"The {what} is not valid.",
            hint="`wsh token` makes a new token; tickets and links work once and for a short time.",
        )


class TooManyAttempts(WshError):
    code = "too_many_attempts"
    blame: ClassVar[Blame] = "caller"

    def __init__(self, retry_s: int) -> None:
        super().__init__(
            "Too many failed attempts.", hint=f"Try again in {retry_s} s; a valid token is never refused by this."
        )
        self.retry_s = retry_s


class OriginNotAllowed(WshError):
    code = "origin_not_allowed"
    blame: ClassVar[Blame] = "caller"

    def __init__(self) -> None:
        super().__init__(
            "Requests from this origin are not accepted.",
            hint="The setting server.cors_origins lists the origins that are accepted besides the server's own.",
        )


class HostNotAllowed(WshError):
    code = "host_not_allowed"
    blame: ClassVar[Blame] = "caller"

    def __init__(self) -> None:
        super().__init__(
            "The Host header does not name this server.",
            hint="Use the server's own address; the setting server.allowed_hosts lists others that are accepted.",
        )


class RouteNotFound(WshError):
    code = "not_found"
    blame: ClassVar[Blame] = "caller"

    def __init__(self) -> None:
        super().__init__("There is nothing at this path.", hint="GET /openapi.json lists every route.")


class MethodNotAllowed(WshError):
    code = "method_not_allowed"
    blame: ClassVar[Blame] = "caller"

    def __init__(self, allowed: list[str]) -> None:
        super().__init__("This path does not take this method.", hint=f"It takes {', '.join(allowed)}.")
        self.allowed = allowed


class UnsupportedMediaType(WshError):
    code = "unsupported_media_type"
    blame: ClassVar[Blame] = "caller"

    def __init__(self) -> None:
        super().__init__("The body is not JSON.", hint="Send 'Content-Type: application/json'.")


class RequestTimeout(WshError):
    code = "request_timeout"
    blame: ClassVar[Blame] = "caller"

    def __init__(self) -> None:
        super().__init__("The request's body took too long to arrive.", hint="Send it again, faster.")


class UnknownMethod(InvalidRequest):
    code = "unknown_method"

    def __init__(self, method: str) -> None:
        super().__init__(f"There is no method {method[:80]!r}.", hint="docs/http-api.md lists the methods.")


_TOOL_CODES = {
    "INVALID_REQUEST": "invalid_request",
    "NOT_FOUND": "not_found",
    "NO_INDEX": "conflict",
    "CAPABILITY_MISSING": "capability_missing",
    "QUEUE_OVERLOADED": "resource_limit_reached",
    "TOOL_TIMEOUT": "request_timeout",
    "FORBIDDEN": "forbidden",
    "ARCHIVE_UNSAFE": "invalid_request",
    "ARCHIVE_TOO_LARGE": "too_large",
    "DOWNLOAD_VERIFY_FAILED": "invalid_request",
    "DISK_FULL": "disk_full",
}


class ToolRefused(WshError):
    """A tool's failure on this wire; `details.tool_code` keeps the tool's own code."""

    def __init__(self, failure: ToolFailure) -> None:
        facts = {"timeout_ms" if key == "timeoutMs" else key: value for key, value in failure.details.items()}
        super().__init__(failure.message, hint=failure.hint, tool_code=failure.code, **facts)
        self.code = _TOOL_CODES.get(failure.code, "internal_error")  # type: ignore[misc]  # one class for all of them


def from_validation(problem: ValidationError, cls: type[InvalidRequest] = InvalidRequest) -> InvalidRequest:
    """What is wrong with which field, in words; the values themselves are not repeated."""
    for error in problem.errors(include_url=False):
        if error["loc"][-1:] == ("format",) and error["type"] == "literal_error":
            return InvalidFormat(str(error["input"])[:40], error["ctx"]["expected"])
    facts = []
    for error in problem.errors(include_url=False, include_context=False, include_input=False)[:5]:
        where = ".".join(str(part) for part in error["loc"] if not str(part).startswith(("function-", "is-instance")))
        text = error["msg"].removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            text = "this field is not known"
        facts.append(f"{where}: {text}" if where else text)
    more = problem.error_count() - len(facts)
    listed = "; ".join(facts) + (f"; and {more} more" if more > 0 else "")
    error_class = cls.__new__(cls)
    WshError.__init__(error_class, f"The request is not valid: {listed}.", hint="GET /openapi.json has every field.")
    return error_class


def to_wire(error: BaseException) -> tuple[int, dict[str, object]]:
    """Status and body of any exception. The unexpected is logged whole and leaves without its text."""
    if isinstance(error, ToolFailure):
        error = ToolRefused(error)
    if not isinstance(error, WshError):
        shortage = find_shortage(error)
        if shortage is None:
            log.error("unexpected %s", type(error).__name__, exc_info=error)
        error = shortage or InternalError()
    return STATUS.get(error.code, 500), {"error": error.to_wire()}


def to_answer(error: BaseException) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Status, headers and body bytes of any exception."""
    status, body = to_wire(error)
    headers = [(b"content-type", b"application/json")]
    if isinstance(error, AuthRequired):
        headers.append((b"www-authenticate", b'Bearer realm="wsh"'))
    elif isinstance(error, MethodNotAllowed):
        headers.append((b"allow", ", ".join(error.allowed).encode()))
    elif isinstance(error, TooManyAttempts):
        headers.append((b"retry-after", str(error.retry_s).encode()))
    elif isinstance(error, RequestTimeout):
        headers.append((b"connection", b"close"))
    return status, headers, json.dumps(body, ensure_ascii=False, default=str).encode("utf-8", "replace")
