"""wsh's own files are not for headless commands, whatever the rules say: tokens, the keeper's secret, policy, journals, sockets.

Looks at every word of an argv that may name a file, as the program would find it: relative to its folder, through links, hard
links, mounts and /proc. Covers programs that read what they are told to read. A program that looks for files by itself is refused
where its search would come across ours; one that runs code of the folder can read whatever the user can (see docs/policy.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from wsh.policy.risk.search import find_search
from wsh.wire.error import Refused

_MOST_FILES = 1000
_MOST_ENTRIES = 200_000
# Reads the content of whatever lies below a folder that it is given, or below the folder it runs in.
_SEARCHES = frozenset("grep egrep fgrep zgrep rg ag ack diff tar cp rsync zip scp".split())
_NEEDS_OPTION = frozenset("grep egrep fgrep zgrep diff cp scp".split())
_RECURSIVE = re.compile(r"-[A-Za-z0-9]*[rR]|--(?:r|de|di)[a-z-]*|-[A-Za-z0-9]*d")
_COPIES = re.compile(r"-[A-Za-z]*[arR]|--[ar]")
# Follows links that it comes across: grep -R, rg -L, and diff unless told otherwise.
_FOLLOWS = {"rg": re.compile(r"-[A-Za-z0-9.]*L|--fo"), "grep": re.compile(r"-[A-Za-z0-9]*R|--de")}
_LISTS_FILES = re.compile(r"--fi")
_PIECES = re.compile(r"[\s\"'`,;(){}\[\]|<>&@=]+")
_WINDOW = re.compile(
    r"/proc/(?:\d+|self|thread-self)/(?:task/\d+/)?(?:root|cwd|fd|fdinfo|environ|mem|maps|map_files|exe)(?:/|$)"
)

_ONLY_LINK = re.compile(r"/(?:root|cwd|exe)$")
"""A link that tells where a process is, as long as nothing is looked up behind it."""
_OWN_STREAM = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/\d+)")
_PROCESS_FOLDER = re.compile(r"/proc(?:/\d+(?:/|$)|$)")
_MOST_LINKS = 40
_LONGEST_PATH = 4096


def refuse_own_files(argv: Sequence[str], cwd: str, folders: Sequence[Path]) -> None:
    """Raises Refused if a word of `argv` names one of `folders`, or something in them. Blocks: run it in a thread."""
    own = [os.path.realpath(folder) for folder in folders]
    if any(_is_within(os.path.realpath(cwd), folder) for folder in own):
        raise _refusal(cwd)
    identities = _list_identities(own)
    for word in argv[1:]:
        if any(folder in word for folder in (*own, *map(str, folders))):
            raise _refusal(word)
        for candidate in _list_paths(word, cwd):
            if _names_own(candidate, own, identities):
                raise _refusal(word)
    searched = _find_searched(argv, cwd)
    for place in searched:
        if place == os.path.sep or _PROCESS_FOLDER.match(place) or any(_is_within(folder, place) for folder in own):
            raise _refusal(place)
    _refuse_links(_find_followed(argv, cwd), own)


def refuse_own_settings(settings: bytes, cwd: str, folders: Sequence[Path]) -> None:
    """Raises Refused if the configuration that git has in `cwd` names something of ours: a work tree, a list of revisions.

    `settings` is the answer to `wsh.git.guard.query`.
    """
    own = [os.path.realpath(folder) for folder in folders]
    identities = _list_identities(own)
    fields = settings.split(b"\0")
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = os.fsdecode(entry).partition("\n")
        if scope in (b"system", b"global", b"command") or not value:
            continue
        for start in (cwd, os.path.join(cwd, ".git")):
            place = os.path.join(start, os.path.expanduser(value))
            above = key == "core.worktree" and any(_is_within(folder, os.path.realpath(place)) for folder in own)
            if above or _names_own(place, own, identities):
                raise _refusal(f"{key} = {value}")


def _refusal(what: str) -> Refused:
    return Refused(
        f"{what[:200]!r} leads to wsh's own files, which headless commands do not read.",
        hint="Name the folder that you are after; a person can look at wsh's files in a terminal of their own.",
    )


def _names_own(candidate: str, own: Sequence[str], identities: set[tuple[int, int]]) -> bool:
    try:
        resolved = os.path.realpath(candidate)
        if any(_is_within(resolved, folder) for folder in own):
            return True
        if _enters_process(candidate):
            return True
        found = os.stat(candidate)
    except (OSError, ValueError):
        return False
    return (found.st_dev, found.st_ino) in identities


def _enters_process(path: str) -> bool:
    """Whether `path` leads, by links too, to a process's memory or environment, or to a file by its view of the file system."""
    if _OWN_STREAM.fullmatch(path):
        return False
    waiting = path.split("/")[::-1]
    at, links = "/", 0
    while waiting and links < _MOST_LINKS and len(at) < _LONGEST_PATH:
        part = waiting.pop()
        if part in ("", "."):
            continue
        at = os.path.dirname(at) if part == ".." else os.path.join(at, part)
        if not waiting and _OWN_STREAM.fullmatch(at):
            return False
        if _WINDOW.match(at) and (waiting or not _ONLY_LINK.search(at)):
            return True
        try:
            target = os.readlink(at)
        except OSError:
            continue
        links += 1
        at = "/" if target.startswith("/") else os.path.dirname(at)
        waiting += reversed(target.split("/"))
    return False


def _list_paths(word: str, cwd: str) -> Iterator[str]:
    """Where a word may lead: as it is, after `=` and `:`, behind the letters of an option, and inside a small program."""
    pieces = {word, *_PIECES.split(word)[:64]}
    parts = {*pieces, word.partition("=")[2], word.rpartition(":")[2]}
    # A letter may stand before it: sed's r, the options of most programs.
    parts |= {piece[piece.index(mark) :] for piece in pieces for mark in "/.~" if mark in piece}
    if word.startswith("-"):
        parts |= {word[at:] for at in range(1, min(len(word), 12))}
    for part in parts:
        if part and "\0" not in part:
            yield os.path.join(cwd, part)


def _find_searched(argv: Sequence[str], cwd: str) -> list[str]:
    """Folders whose whole content the program would read; empty if it reads only files that it is given."""
    name = os.path.basename(argv[0])
    words = list(argv[1:])
    named = [os.path.realpath(os.path.join(cwd, word)) for word in words if not word.startswith("-")]
    folders = [place for place in named if os.path.isdir(place)]
    if name in ("wc", "sort", "du"):
        # The files are named in a file, which may say anything.
        return [os.path.sep] if any(_LISTS_FILES.match(word) for word in words) else []
    if name == "git":
        # Outside a repository both read plain folders, without being asked to.
        return folders if {"grep", "diff"} & set(words) and folders else _here_if(words, ("--no-i", "--unt"), cwd)
    if name == "find":
        return (folders or [os.path.realpath(cwd)]) if any(w.startswith(("-exec", "-ok")) for w in words) else []
    if name == "mv":
        into = any(word.startswith(("-t", "--t")) for word in words)
        return [place for place in (named if into else named[:-1]) if os.path.isdir(place)]
    recursive = _COPIES if name == "cp" else _RECURSIVE
    if name not in _SEARCHES or (name in _NEEDS_OPTION and not any(recursive.match(word) for word in words)):
        return []
    return [*folders, *_list_looked(argv, cwd)] or [os.path.realpath(cwd)]


def _list_looked(argv: Sequence[str], cwd: str) -> list[str]:
    """The folders of a search. Without paths that is `cwd`, even where the pattern is the name of a folder."""
    search = find_search(argv)
    return [os.path.realpath(os.path.join(cwd, place)) for place in search.places] if search is not None else []


def _here_if(words: Sequence[str], options: tuple[str, ...], cwd: str) -> list[str]:
    return [os.path.realpath(cwd)] if any(word.startswith(options) for word in words) else []


def _find_followed(argv: Sequence[str], cwd: str) -> list[str]:
    """Folders in which the program follows the links that it comes across."""
    name = os.path.basename(argv[0])
    places = [os.path.realpath(os.path.join(cwd, word)) for word in argv[1:] if not word.startswith("-")]
    folders = [place for place in places if os.path.isdir(place)]
    if name == "diff":
        return [] if any(word.startswith("--no-d") for word in argv[1:]) else folders
    option = _FOLLOWS.get("grep" if name.endswith("grep") else name)
    if option is None or not any(option.match(word) for word in argv[1:]):
        return []
    return [*folders, *_list_looked(argv, cwd)] or [os.path.realpath(cwd)]


def _refuse_links(waiting: list[str], own: Sequence[str]) -> None:
    """Raises Refused if a link below one of these folders leads to our files, or to a folder above them."""
    seen: set[str] = set()
    looked = 0
    while waiting:
        folder = waiting.pop()
        if folder in seen:
            continue
        seen.add(folder)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        looked += len(entries)
        if looked > _MOST_ENTRIES:
            raise Refused(
                f"{folder[:200]!r} holds more than can be looked through for links to wsh's own files.",
                hint="Do not follow links (grep -r, rg without -L), or name a smaller folder.",
            )
        for entry in entries:
            if entry.is_symlink():
                target = os.path.realpath(entry.path)
                if _enters_process(entry.path) or (_PROCESS_FOLDER.match(target) and os.path.isdir(target)):
                    raise _refusal(entry.path)
                if any(_is_within(target, ours) or _is_within(ours, target) for ours in own):
                    raise _refusal(entry.path)
                if os.path.isdir(target):
                    waiting.append(target)
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _list_identities(own: Sequence[str]) -> set[tuple[int, int]]:
    """Device and inode of our files, so that another name for one is known: a hard link, a bind mount."""
    found: set[tuple[int, int]] = set()
    for folder in own:
        for root, _, names in os.walk(folder):
            for name in names:
                try:
                    info = os.lstat(os.path.join(root, name))
                except OSError:
                    continue
                found.add((info.st_dev, info.st_ino))
            if len(found) >= _MOST_FILES:
                return found
    return found
