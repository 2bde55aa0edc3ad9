"""Which folders a command reads as a whole, without naming the files in them: grep -r, rg, diff of folders, git grep.

Pure: words in, words out. Neighbours: `secret` asks what lies below such a folder, `execute.own_file` whether that is wsh's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from wsh.policy.parse.option import Arguments, arity, scan
from wsh.sandbox.secret import HOME_SECRETS

_GREP = arity(
    "-e -f -m -A -B -C -d -D --regexp --file --max-count --after-context --before-context --context --label --binary-files "
    "--devices --directories --exclude --exclude-from --exclude-dir --include --group-separator"
)
_RG = arity(
    "-A -B -C -E -e -f -g -j -m -M -r -t -T -d --after-context --before-context --context --color --colors "
    "--context-separator --dfa-size-limit --encoding --engine --field-context-separator --field-match-separator --file "
    "--glob --iglob --ignore-file --max-columns --max-count --max-depth --max-filesize --path-separator --pre --pre-glob "
    "--regex-size-limit --regexp --replace --sort --sortr --threads --type --type-add --type-clear --type-not"
)
_AG = arity(
    "-A -B -C -G -g -m -p -W --after --before --context --depth --file-search-regex --ignore --ignore-dir --pager"
)
_GIT_GREP = arity("-e -A -B -C -f -m --max-depth --after-context --before-context --context --threads --max-count")
_GREPS = frozenset("grep egrep fgrep zgrep".split())
_PATTERN = ("-e", "--regexp", "-f", "--file")
_HIDDEN_NAMES = tuple({name.partition("/")[0] for name in HOME_SECRETS})


@dataclass(frozen=True)
class FolderSearch:
    places: tuple[str, ...]
    """Paths as the command has them; `.` where it has none and looks through its own folder."""
    hidden: bool = True
    """Hidden files and folders are read, too."""
    deep: bool = True
    """The folders inside are read, too."""


def find_search(words: Sequence[str]) -> FolderSearch | None:
    """What the command would search; None if it reads only files that it names."""
    name, rest = words[0].rpartition("/")[2], words[1:]
    if name in _GREPS:
        found = scan(rest, _GREP)
        recurses = found.has("-r", "-R", "--recursive", "--dereference-recursive") or any(
            "recurse".startswith(value) for value in found.values("-d", "--directories") if value
        )
        return FolderSearch(_list_places(found, *_PATTERN)) if recurses else None
    if name == "rg":
        found = scan(rest, _RG)
        return FolderSearch(_list_places(found, *_PATTERN, "--files", "--type-list"), _shows_hidden(found))
    if name in ("ag", "ack"):
        found = scan(rest, _AG)
        return FolderSearch(_list_places(found), found.has("-u", "--unrestricted", "--hidden"))
    if name == "diff":
        return _find_diff(rest)
    if name == "git" and "grep" in rest:
        found = scan(rest[rest.index("grep") + 1 :], _GIT_GREP)
        return FolderSearch(_list_places(found, "-e", "-f")) if found.has("--untracked", "--no-index") else None
    if name == "git" and "diff" in rest:
        # Outside a repository it compares two folders, without being asked to.
        operands = tuple(word for word in rest[rest.index("diff") + 1 :] if not word.startswith("-"))
        return FolderSearch(operands) if len(operands) > 1 else None
    return None


def _list_places(found: Arguments, *pattern: str) -> tuple[str, ...]:
    """The operands without the pattern, which one of the options in `pattern` may give instead."""
    return tuple(found.operands[0 if found.has(*pattern) else 1 :]) or (".",)


def _shows_hidden(found: Arguments) -> bool:
    """Whether rg reads hidden files: asked to, or because a glob, a type or a list of its own names them."""
    return found.has("-.", "-u", "--hidden", "--unrestricted", "--type-add", "--ignore-file") or any(
        _may_mean_hidden(glob) for glob in found.values("-g", "--glob", "--iglob")
    )


def _may_mean_hidden(glob: str) -> bool:
    if glob.startswith("!"):
        return False
    return any(
        re.match(r"[.{\[\\?]", part) or any(fnmatchcase(name, part) for name in _HIDDEN_NAMES)
        for part in glob[:1000].split("/")[:20]
    )


def _find_diff(words: Sequence[str]) -> FolderSearch:
    deep = any(re.match(r"-[A-Za-z0-9]*r|--rec", word) for word in words)
    named = [word for word in words if not word.startswith("-")]
    named += [word.partition("=")[2] for word in words if word.startswith(("--from-file=", "--to-file="))]
    return FolderSearch(tuple(named), deep=deep)
