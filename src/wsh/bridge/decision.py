"""The one decision of a request, from the queue's words to the frame that tells it."""

from __future__ import annotations

from wsh.approval.approver import TypedLineOutcome
from wsh.approval.evidence import Evidence
from wsh.approval.queue import Settled
from wsh.approval.request import ApprovalRequest
from wsh.bridge.frame import Decision, LineFrame, ShownEvidence


def make_decision(request: ApprovalRequest, settled: Settled) -> Decision:
    return Decision(
        id=request.id,
        trace_id=request.trace_id,
        outcome=settled.outcome,
        scope=settled.scope,
        by=settled.by,
        code=settled.code,
        reason=settled.reason,
        session_id=request.session_id,
        terminal_id=request.terminal_id,
        edited=settled.edited,
        evidence=_show(settled.evidence) if settled.evidence else None,
        rows=settled.rows,
        cols=settled.cols,
        where=settled.where,
    )


def make_line(request: ApprovalRequest, line: TypedLineOutcome, offset: int) -> LineFrame:
    """What came of a typed line; `offset` is where the terminal's output stands then."""
    return LineFrame(
        request=request.id,
        terminal_id=request.terminal_id,
        trace_id=request.trace_id,
        finished_by=line.finished_by,
        exit_code=line.exit_code,
        output=line.output,
        omitted_bytes=line.omitted_bytes,
        duration_ms=line.duration_ms,
        offset=offset,
    )


def _show(evidence: Evidence) -> ShownEvidence:
    return ShownEvidence(
        argv=list(evidence.shown_argv),
        cwd=evidence.cwd,
        executable=evidence.executable,
        executable_sha256=evidence.executable_sha256,
        env_digest=evidence.env_digest,
        binding=evidence.binding,
    )
