"""git, run so that a hostile repository's configuration cannot run anything.

A repository's own configuration may name programs: file system monitors, hooks, pagers, filters, diff drivers, gpg,
ssh, credential helpers. What the user configured globally is kept; what the repository says in those places is
replaced. Pure: the caller asks git for its settings (`query`, which executes nothing) and passes the answer here.
Settings travel as GIT_CONFIG_* variables. A submodule has settings that were not asked for: git stays out of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wsh.git.key import ALWAYS, READING, fold, replacement, starts_program

_QUERY = ("config", "--list", "--show-scope", "--includes", "-z")
_INDEX_QUERY = ("ls-files", "--stage", "--full-name", "-z", ":/")
_TAKE_VALUE = frozenset("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source".split())
_TRUSTED_SCOPES = frozenset({b"system", b"global"})
_OURS = b"command"
_GITLINK = b"160000 "
MAX_SETTINGS_BYTES = 64 * 1024
"""How much room replacing a repository's settings may take in the environment."""

READING_COMMANDS = frozenset(
    "status log show diff whatchanged diff-tree diff-index diff-files branch tag remote stash reflog config "
    "worktree ls-files "
    "ls-tree blame annotate rev-parse rev-list grep describe show-ref for-each-ref shortlog cat-file merge-base "
    "name-rev "
    "cherry count-objects check-ignore check-attr version".split()
)
_LOOK_INTO_SUBMODULES = frozenset(
    "add am bisect checkout cherry-pick commit merge pull rebase reset restore revert rm submodule switch".split()
)
# git takes the first value of these, so one that is said later replaces nothing.
_FIRST_WINS = re.compile(r"remote\..*\.(?:uploadpack|receivepack)", re.DOTALL)
_NO_DRIVERS = ("--no-ext-diff", "--no-textconv")
_NO_SUBMODULES = ("--ignore-submodules=dirty",)
# What is said right after these words: attributes in the tree can choose a driver that the configuration defines.
_SAID: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    *((("stash", verb), _NO_DRIVERS) for verb in ("show", "list")),
    (("reflog", "show"), _NO_DRIVERS),
    *((("reflog", verb), ()) for verb in ("list", "exists", "expire", "delete", "drop", "write")),
    *(((verb,), _NO_DRIVERS) for verb in ("log", "show", "whatchanged", "diff-tree", "reflog")),
    *(((verb,), (*_NO_DRIVERS, *_NO_SUBMODULES)) for verb in ("diff", "diff-index", "diff-files")),
    (("status",), _NO_SUBMODULES),
    *(((verb,), ("--no-textconv",)) for verb in ("blame", "annotate", "grep")),
)
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "GIT_ATTR_NOSYSTEM": "1",
    # The first core.gitProxy that fits counts, so a setting cannot replace it.
    "GIT_PROXY_COMMAND": "",
}


class Unguarded(Exception):
    """git cannot be run there without running what the repository names; the message says why."""


@dataclass(frozen=True)
class Guarded:
    argv: tuple[str, ...]
    env: dict[str, str]


def query(argv: Sequence[str]) -> tuple[str, ...]:
    """The question what is configured where `argv` goes, and by whom. Executes nothing."""
    return (*get_placed(argv), *_QUERY)


def index_query(argv: Sequence[str]) -> tuple[str, ...] | None:
    """The question what is tracked there, if the answer matters for `argv`."""
    return (*get_placed(argv), *_INDEX_QUERY) if _looks_into_submodules(_split(argv)[1]) else None


def _split(argv: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands before the subcommand (`git -C folder`), and the rest."""
    end = 1
    while end < len(argv) and argv[end].startswith("-"):
        end += 2 if argv[end] in _TAKE_VALUE else 1
    return tuple(argv[:end]), tuple(argv[end:])


def get_placed(argv: Sequence[str]) -> tuple[str, ...]:
    """git, and those of its options that say where it goes."""
    before = list(reversed(_split(argv)[0]))
    kept = [before.pop()]
    while before:
        option = before.pop()
        if option in _TAKE_VALUE and before:
            kept += [option, before.pop()]
        elif option == "--bare" or option.partition("=")[0] in _TAKE_VALUE:
            kept.append(option)
    return tuple(kept)


def get_verb(argv: Sequence[str]) -> str | None:
    return next(iter(_split(argv)[1]), None)


def _looks_into_submodules(words: Sequence[str]) -> bool:
    """True for what asks every submodule for its state, which no option or setting keeps it from."""
    verb, rest = "".join(words[:1]), words[1:]
    if verb == "describe":
        return any(word.startswith(("--di", "--b")) for word in rest)
    if verb == "stash":
        return tuple(rest[:1]) not in (("list",), ("show",))
    return verb in _LOOK_INTO_SUBMODULES


def guard(argv: Sequence[str], settings: bytes, index: bytes | None = None) -> Guarded:
    """`argv` of git and the variables to run it with.

    `settings` is the answer to `query`, `index` that to `index_query`. Raises Unguarded.
    """
    before, words = _split(argv)
    reading = words[0] in READING_COMMANDS if words else False
    if _looks_into_submodules(words) and (index is None or _has_gitlinks(index)):
        way_out = "leave --dirty and --broken out" if words[0] == "describe" else "do it in a terminal"
        raise Unguarded(f"{words[0]} looks into submodules, whose own configuration could run programs; {way_out}")
    replaced = _replaced(settings)
    if not reading and any(_FIRST_WINS.fullmatch(fold(key)) for key, _ in replaced):
        raise Unguarded("the repository names the program that a remote is asked by, and that cannot be replaced")
    pairs = [*ALWAYS, *(READING if reading else ()), *replaced]
    env = dict(_ENVIRONMENT)
    env["GIT_CONFIG_COUNT"] = str(len(pairs))
    for number, (key, value) in enumerate(pairs):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    if reading:
        env["GIT_OPTIONAL_LOCKS"] = "0"
        # A partial clone would fetch what it lacks, by whatever transport its configuration names.
        env["GIT_ALLOW_PROTOCOL"] = ""
        env["GIT_NO_LAZY_FETCH"] = "1"
    return Guarded((*before, *_said(words)), env)


def _said(words: tuple[str, ...]) -> tuple[str, ...]:
    for verb, more in _SAID:
        if words[: len(verb)] == verb:
            return (*verb, *more, *words[len(verb) :])
    return words


def _has_gitlinks(index: bytes) -> bool:
    return bool(list_gitlinks(index))


def list_gitlinks(index: bytes) -> list[bytes]:
    """The paths of submodules, from the top of the work tree. `index` is the answer to `index_query`."""
    return [entry.partition(b"\t")[2] for entry in index.split(b"\0") if entry.startswith(_GITLINK)]


def find_started(settings: bytes) -> str | None:
    """The first key of the repository's own for which git, without the guard, starts a program. Raises Unguarded."""
    for scope, key, value in _list_settings(settings):
        if scope not in _TRUSTED_SCOPES and scope != _OURS and starts_program(key, value):
            return key
    return None


def _list_settings(settings: bytes) -> Iterator[tuple[bytes, str, str]]:
    """Scope, key and value. Raises Unguarded."""
    fields = settings.split(b"\0")
    if fields.pop() or len(fields) % 2:
        raise Unguarded("what git says about its configuration was not understood")
    for scope, entry in zip(fields[::2], fields[1::2], strict=True):
        key, _, value = entry.decode("utf-8", "surrogateescape").partition("\n")
        yield scope, key, value


def _replaced(settings: bytes) -> list[tuple[str, str]]:
    hostile: dict[str, str] = {}
    trusted: dict[str, list[str]] = {}
    for scope, key, value in _list_settings(settings):
        if scope == _OURS:
            continue
        instead = replacement(key, value)
        if instead is None:
            continue
        if scope in _TRUSTED_SCOPES:
            trusted.setdefault(fold(key), []).append(value)
        else:
            hostile[key] = instead
    pairs: list[tuple[str, str]] = []
    for key, instead in hostile.items():
        kept = trusted.get(fold(key), [])
        if fold(key).startswith("credential"):
            # An empty helper forgets those before it; then the user's own come back.
            pairs += [(key, ""), *((key, value) for value in kept)]
        else:
            pairs.append((key, kept[-1] if kept else instead))
    if sum(len(key) + len(value) + 64 for key, value in pairs) > MAX_SETTINGS_BYTES:
        raise Unguarded("the repository's configuration names more programs than can be replaced")
    return pairs
