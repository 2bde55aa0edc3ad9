"""What would happen to a command, with everything that is looked at before it runs: the policy, and wsh's own files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from wsh.policy.engine import decide
from wsh.policy.execute.own_file import refuse_own_files
from wsh.policy.policy import Policy
from wsh.policy.request import Mode, PolicyRequest
from wsh.policy.risk.label import Label
from wsh.policy.verdict import Effect, Reason, Verdict
from wsh.wire.error import Refused


def explain_request(request: PolicyRequest, policy: Policy, own_folders: Sequence[Path]) -> Verdict:
    """The verdict on `request`, whose `cwd` is known. Looks at the disk where words may name files of wsh: not on the loop."""
    verdict = decide(request, policy)
    secret = any(found.label is Label.READS_SECRETS for found in verdict.labels)
    if request.mode is Mode.HEADLESS and (verdict.effect is Effect.ALLOW or secret):
        try:
            for argv in verdict.argv:
                refuse_own_files(argv, request.cwd or "/", own_folders)
        except Refused as refusal:
            return replace(
                verdict,
                effect=Effect.DENY,
                reason=Reason.OWN_FILES,
                message=refusal.message,
                hint=refusal.hint,
                rule=None,
            )
    return verdict
