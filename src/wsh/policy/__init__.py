"""Parse a command, decide, explain, audit. Pure apart from its own files.

`decide(Request, Policy) -> Verdict` is the one point where every action meets policy. `PolicyStore` keeps the policy
file, `Audit` the trail, `exec_gate` the simple gate of `execute_command`. Knows no process, no session and no door.
"""

from __future__ import annotations

from wsh.policy.engine import decide
from wsh.policy.policy import Policy, default_policy, strictest_policy
from wsh.policy.request import Action, Mode, PolicyRequest
from wsh.policy.risk.label import Label, LabelReason
from wsh.policy.rule.rule import Rule, RuleEffect, RuleError, parse_pattern
from wsh.policy.verdict import Effect, Kind, Reason, Risk, RiskReason, Verdict

__all__ = [
    "Action",
    "Effect",
    "Kind",
    "Label",
    "LabelReason",
    "Mode",
    "Policy",
    "PolicyRequest",
    "Reason",
    "Risk",
    "RiskReason",
    "Rule",
    "RuleEffect",
    "RuleError",
    "Verdict",
    "decide",
    "default_policy",
    "parse_pattern",
    "strictest_policy",
]
