"""A policy as plain data, for people who look at it: the command line and the page show the same."""

from __future__ import annotations

from datetime import UTC, datetime

from wsh.policy.file.store import PolicyStore


def describe_policy(store: PolicyStore) -> dict[str, object]:
    """What is in force now, and the warning if the file cannot be used."""
    held = store.current()
    return {
        "file": str(store.path),
        "exists": store.path.exists(),
        "warning": store.warning,
        "cwd_roots": list(held.cwd_roots),
        "env_allow": list(held.env_allow),
        "blocked": sorted(kind.value for kind in held.blocked),
        "also_destructive": [" ".join(prefix) for prefix in held.also_destructive],
        "lifetime_ms": held.lifetime_ms,
        "approval_ms": held.approval_ms,
        "rules": [
            {
                "effect": rule.effect.value,
                "command": rule.pattern,
                "modes": sorted(mode.value for mode in rule.modes),
                "exact": rule.exact,
                "cwd": rule.cwd,
                "workspace": rule.workspace,
                "caller_surface": rule.caller_surface,
                "expires": describe_moment(rule.expires),
                "comment": rule.comment,
                "origin": rule.origin,
            }
            for rule in held.rules
        ],
    }


def describe_moment(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat()
