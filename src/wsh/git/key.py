"""Which of git's settings name something that git runs, and what may stand there instead.

From git's documentation of its configuration, from newer versions than the one at hand too, and at the end by the
sound of a name: a key nobody here has heard of, but that ends like a command, is treated as one.
"""

from __future__ import annotations

import re

# Keys whose value git may execute, and what stands there if the user has set nothing globally.
_RUNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), value)
    for pattern, value in (
        (r"core\.sshcommand", "ssh"),
        (r"core\.(?:gitproxy|askpass|alternaterefscommand|virtualfilesystem)", ""),
        (r"(?:core|sequence)\.editor", "false"),
        (r"core\.pager|pager\..*", "cat"),
        (r"interactive\.difffilter", ""),
        (r"filter\..*\.(?:clean|smudge|process)", ""),
        (r"filter\..*\.required", "false"),
        # An empty converter is started all the same, so it gets one that changes nothing.
        (r"diff\..*\.textconv", "cat"),
        (r"diff\..*\.cachetextconv", "false"),
        (r"diff\..*\.command|diff\.external", ""),
        (r"merge\..*\.driver", "false"),
        (r"(?:difftool|mergetool|man|browser|guitool)\..*\.(?:cmd|path)", "false"),
        (r"gpg\.(?:.*\.)?program|gpg\.ssh\.defaultkeycommand", "false"),
        (r"credential(?:\..*)?\.helper", ""),
        (r"remote\..*\.uploadpack", "git-upload-pack"),
        (r"remote\..*\.receivepack", "git-receive-pack"),
        (r"remote\..*\.(?:vcs|proxy)", ""),
        (r"submodule\..*\.update", "none"),
        (r"alias\..*", ""),
        (r"trailer\..*\.(?:command|cmd)", ""),
        (r"hook\..*\.command", "true"),
        (r"hook\..*\.event", ""),
        (r"uploadpack\.packobjectshook|gc\.recentobjectshook", "true"),
        (r"tar\..*\.command", "cat"),
        (r"lfs\.extension\..*\.(?:clean|smudge)", "cat"),
        (r"lfs\.customtransfer\..*|lfs\.(?:.*\.)?standalonetransferagent|lfs\.ssh\..*", ""),
        (r"sendemail\.(?:.*\.)?smtpserver|sendemail\..*cmd", "false"),
        (r"fetch\.bundleuri", ""),
        (r"web\.browser|help\.browser|instaweb\.(?:httpd|browser)", ""),
        (r".*(?:cmd|command|program|helper|driver|hook|tunnel|editor|browser)", "false"),
    )
)

ALWAYS: tuple[tuple[str, str], ...] = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("protocol.ext.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("log.showSignature", "false"),
    ("log.diffMerges", "separate"),
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
)
"""Set whatever is configured. A submodule has a configuration of its own, so nothing may look into one."""

READING: tuple[tuple[str, str], ...] = tuple(
    (key, "false") for key in ("gpg.program", "gpg.openpgp.program", "gpg.x509.program", "gpg.ssh.program")
)
"""Set for commands that only read: nothing they print needs a signature checked."""

_FIXED = frozenset(key.lower() for key, _ in ALWAYS)


def replacement(key: str, value: str) -> str | None:
    """What stands in place of the `value` that a repository gives `key`; None if git runs nothing because of it."""
    folded = fold(key)
    if folded in _FIXED:
        return None
    if folded == "format.pretty" or folded.startswith("pretty."):
        return "medium" if "%G" in value else None
    return next((value for pattern, value in _RUNS if pattern.fullmatch(folded)), None)


def starts_program(key: str, value: str) -> bool:
    """Whether git, as it is, may start a program because a repository gives `key` that `value`."""
    folded = fold(key)
    if folded == "core.fsmonitor":  # a truth value means git's own monitor
        return value.lower() not in ("", "true", "yes", "on", "1", "false", "no", "off", "0")
    if folded in ("core.hookspath", "core.pager"):
        return True
    if folded in ("protocol.allow", "protocol.ext.allow"):
        return value.lower() != "never"
    if re.fullmatch(r"submodule\..*\.update", folded, re.DOTALL):
        return value.startswith("!")
    return replacement(key, value) is not None


def fold(key: str) -> str:
    """Section and name do not mind case, the part between them does."""
    first, _, rest = key.partition(".")
    middle, dot, last = rest.rpartition(".")
    return f"{first.lower()}.{middle}{dot}{last.lower()}"
