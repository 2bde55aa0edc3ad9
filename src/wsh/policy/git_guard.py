"""git, run so that a hostile repository's configuration cannot run anything.

A repository's own configuration may name programs: file system monitors, hooks, pagers, filters, diff drivers, gpg,
ssh, credential helpers. What the user configured globally is kept; what the repository says in those places is
replaced. Pure: the caller asks git for its settings (`QUERY`, which executes nothing) and passes the answer here.
Settings travel as GIT_CONFIG_* variables, which git also passes on to the gits it starts in submodules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

QUERY: tuple[str, ...] = ("git", "config", "--list", "--show-scope", "--includes", "-z")
_HOSTILE_SCOPES = frozenset({"local", "worktree"})

READING = frozenset(
    "status log show diff whatchanged diff-tree diff-index diff-files branch tag remote stash reflog config "
    "worktree ls-files "
    "ls-tree blame annotate rev-parse rev-list grep describe show-ref for-each-ref shortlog cat-file merge-base "
    "name-rev "
    "cherry count-objects check-ignore check-attr version".split()
)
_DIFFING = frozenset({"log", "show", "diff", "whatchanged", "diff-tree", "diff-index", "diff-files", "reflog"})

# Keys whose value git may execute, and what stands there if the user has set nothing globally.
_RUNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), value)
    for pattern, value in (
        (r"core\.sshcommand", "ssh"),
        (r"core\.(?:gitproxy|askpass|alternaterefscommand)", ""),
        (r"(?:core|sequence)\.editor", "false"),
        (r"core\.pager|pager\..*", "cat"),
        (r"interactive\.difffilter", ""),
        (r"filter\..*\.(?:clean|smudge|process)", ""),
        (r"filter\..*\.required", "false"),
        (r"diff\..*\.(?:command|textconv)", ""),
        (r"merge\..*\.driver", "false"),
        (r"(?:difftool|mergetool|man|browser|guitool)\..*\.(?:cmd|path)", "false"),
        (r"gpg\.(?:program|ssh\.program|x509\.program|openpgp\.program|ssh\.defaultkeycommand)", "false"),
        (r"credential(?:\..*)?\.helper", ""),
        (r"remote\..*\.(?:vcs|uploadpack|receivepack)", ""),
        (r"submodule\..*\.update", "none"),
        (r"alias\..*", ""),
        (r"trailer\..*\.(?:command|cmd)", ""),
        (r"hook\..*\.command", ""),
        (r"uploadpack\.packobjectshook", ""),
        (r"lfs\.customtransfer\..*", ""),
        (r"sendemail\..*cmd", "false"),
        (r"web\.browser|help\.browser|diff\.external", ""),
    )
)
# A value that cannot be emptied: git refuses an empty program, so these get their own words.
_REMOTE_DEFAULTS = {"uploadpack": "git-upload-pack", "receivepack": "git-receive-pack"}

_ALWAYS: tuple[tuple[str, str], ...] = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("protocol.ext.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("log.showSignature", "false"),
    ("diff.ignoreSubmodules", "dirty"),
)
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "GIT_ATTR_NOSYSTEM": "1",
}


@dataclass(frozen=True)
class Guarded:
    argv: tuple[str, ...]
    env: dict[str, str]


def guard(argv: Sequence[str], settings: bytes | None) -> Guarded:
    """`argv` of git and the variables to run it with. `settings` is the answer to QUERY, None outside a repository."""
    pairs = [*_ALWAYS, *_replaced(settings or b"")]
    env = dict(_ENVIRONMENT)
    env["GIT_CONFIG_COUNT"] = str(len(pairs))
    for index, (key, value) in enumerate(pairs):
        env[f"GIT_CONFIG_KEY_{index}"] = key
        env[f"GIT_CONFIG_VALUE_{index}"] = value
    subcommand = argv[1] if len(argv) > 1 else ""
    if subcommand in READING:
        env["GIT_OPTIONAL_LOCKS"] = "0"
        # A partial clone would fetch what it lacks, by whatever transport its configuration names.
        env["GIT_ALLOW_PROTOCOL"] = ""
        env["GIT_NO_LAZY_FETCH"] = "1"
    return Guarded(_without_drivers(tuple(argv)), env)


def _without_drivers(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Attributes in the tree can choose a diff driver that the configuration defines."""
    if len(argv) > 1 and argv[1] in _DIFFING:
        return (*argv[:2], "--no-ext-diff", "--no-textconv", *argv[2:])
    if len(argv) > 2 and argv[1] == "stash" and argv[2] == "show":
        return (*argv[:3], "--no-ext-diff", "--no-textconv", *argv[3:])
    if len(argv) > 1 and argv[1] in ("blame", "annotate", "grep"):
        return (*argv[:2], "--no-textconv", *argv[2:])
    return argv


def _replaced(settings: bytes) -> list[tuple[str, str]]:
    hostile: dict[str, None] = {}
    trusted: dict[str, list[str]] = {}
    fields = settings.split(b"\0")
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = entry.decode("utf-8", "surrogateescape").partition("\n")
        folded = _fold(key)
        if scope.decode("ascii", "replace") in _HOSTILE_SCOPES:
            hostile[key] = None
        else:
            trusted.setdefault(folded, []).append(value)
    pairs: list[tuple[str, str]] = []
    for key in hostile:
        folded = _fold(key)
        default = next((value for pattern, value in _RUNS if pattern.fullmatch(folded)), None)
        if default is None or any(known.lower() == folded for known, _ in _ALWAYS):
            continue
        if "\0" in key or "\ufffd" in key:
            continue
        if folded.startswith("remote."):
            default = _REMOTE_DEFAULTS.get(folded.rpartition(".")[2], default)
        kept = trusted.get(folded, [])
        if folded.startswith("credential"):
            # An empty helper forgets those before it; then the user's own come back.
            pairs += [(key, ""), *((key, value) for value in kept)]
        else:
            pairs.append((key, kept[-1] if kept else default))
    return pairs


def _fold(key: str) -> str:
    """Section and name do not mind case, the part between them does."""
    first, _, rest = key.partition(".")
    middle, dot, last = rest.rpartition(".")
    return f"{first.lower()}.{middle}{dot}{last.lower()}"
