"""Argument models of find and rg."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from wsh.policy.harmless.model import Judge, judged, model

_FIND_ALONE = frozenset(
    "-empty -nouser -nogroup -readable -writable -executable -true -false -print -print0 -ls -prune -quit -not "
    "-a -and -o -or "
    "-depth -d -mount -xdev -follow -daystart -noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race "
    "! ( ) ,".split()
)
_FIND_TEXT = frozenset(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -newer -anewer "
    "-cnewer -user -group "
    "-samefile -lname -ilname -fstype -context -printf".split()
)
_FIND_NUMBER = frozenset(
    "-size -mtime -atime -ctime -mmin -amin -cmin -uid -gid -links -inum -used -maxdepth -mindepth".split()
)
_NUMBER = re.compile(r"^[+-]?\d+(?:\.\d+)?[bcwkMG]?$")
_PERMISSION = re.compile(r"^[-/]?(?:[0-7]{1,4}|[ugoa]*[-+=][rwxXst]*(?:,[ugoa]*[-+=][rwxXst]*)*)$")
_NEWER = re.compile(r"^-newer[aBcm][aBcmt]$")


def _find(arguments: Sequence[str]) -> str | None:
    """Tests and printing only. Anything that runs, deletes or writes is not listed, so it is refused."""
    position = 0
    while position < len(arguments):
        word = arguments[position]
        position += 1
        if word in ("-H", "-L", "-P", "--help", "--version") or re.fullmatch(r"-O[0-3]", word) or word in _FIND_ALONE:
            continue
        if word in _FIND_TEXT or word in _FIND_NUMBER or word == "-perm" or _NEWER.match(word):
            if position >= len(arguments):
                return f"the test {word} lacks its value"
            value = arguments[position]
            position += 1
            if word in _FIND_NUMBER:
                fine = bool(_NUMBER.match(value))
            elif word == "-perm":
                fine = bool(_PERMISSION.match(value))
            else:
                fine = not value.startswith("-")
            if not fine:
                return f"the value {value!r} of {word} is not known to be harmless"
            continue
        if word.startswith("-"):
            return f"{word!r} is not a test known to be harmless"
    return None


_RG = model(
    "-aciFHhIlLnNopPqsSuUvVwx0. --auto-hybrid-regex --binary --block-buffered --byte-offset --case-sensitive "
    "--column --count "
    "--count-matches --crlf --debug --files --files-with-matches --files-without-match --fixed-strings --follow "
    "--glob-case-insensitive "
    "--heading --hidden --ignore-case --include-zero --invert-match --json --line-buffered --line-number --line-regexp "
    "--max-columns-preview --mmap --multiline --multiline-dotall --no-binary --no-config --no-filename "
    "--no-heading --no-hidden "
    "--no-ignore --no-ignore-dot --no-ignore-exclude --no-ignore-files --no-ignore-global --no-ignore-messages "
    "--no-ignore-parent "
    "--no-ignore-vcs --no-line-number --no-messages --no-mmap --no-pcre2-unicode --no-require-git --no-unicode "
    "--null --null-data "
    "--one-file-system --only-matching --passthru --pcre2 --pcre2-version --pretty --quiet --smart-case --stats "
    "--stop-on-nonmatch "
    "--text --trace --trim --type-list --unrestricted --vimgrep --with-filename --word-regexp",
    values="-ABCEefgjmMrtTd --after-context --before-context --context --color --colors --context-separator "
    "--dfa-size-limit "
    "--encoding --engine --field-context-separator --field-match-separator --file --glob --iglob --ignore-file "
    "--max-columns "
    "--max-count --max-depth --max-filesize --path-separator --regex-size-limit --regexp --replace --sort "
    "--sortr --threads "
    "--type --type-add --type-clear --type-not",
)

PROGRAMS: Mapping[str, Judge] = {"find": _find, "rg": judged(_RG)}
