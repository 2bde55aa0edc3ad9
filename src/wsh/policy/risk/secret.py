"""What people keep secret, by name and place, and which commands read it.

Pure: paths are looked at as text. Neighbours: `label` tells the findings, `search` knows what a command looks through, `sandbox.secret` lists the places.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from wsh.policy.parse.word import GLOB, HOME, UNKNOWN, show
from wsh.policy.risk.search import FolderSearch, find_search
from wsh.sandbox.secret import HOME_SECRETS, SERVICE_SECRETS, SYSTEM_SECRETS

_LOOKS_ONLY = frozenset(
    "ls rm rmdir unlink stat test [ chmod chown chgrp touch mkdir du echo printf cd pushd which type tree realpath readlink basename dirname "
    "ssh-keygen ssh-add".split()
)
"""Name files without reading what is in them."""
_SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".password-store", ".aws", ".azure", "gcloud", ".kube", ".vault"})
_PUBLIC = re.compile(r"(known_hosts(\.old)?|authorized_keys|.*\.pub|\.?ssh_config|config\.d)$")
_SECRET_NAME = re.compile(
    r"""(id_(rsa|dsa|ecdsa|ed25519)(_sk)?([._-][\w-]+)?(?<!\.pub)
    |.*\.(pem|key|p12|pfx|jks|kdbx|keystore|ppk|gpg|asc|age|ovpn|nk|creds|keytab|fleet\.json)
    |shadow-?|gshadow-?|sudoers|master\.passwd|\.htpasswd|\.?pgpass|\.my\.cnf|\.netrc|_netrc
    |\.env|\.envrc|\.env\.(?!example$|sample$|template$|dist$|schema$)[\w.-]+|[\w-]+\.env
    |\.npmrc|\.pypirc|\.git-credentials|\.vault-token|\.boto|\.s3cfg|credentials(\.\w+)?|\.credentials(\.\w+)?
    |service[-_]?account[\w.-]*\.json|secrets?(\.\w+)?|\.secrets?(\.\w+)?|tokens?(\.(txt|json|ya?ml))?|\.?token
    |kubeconfig|hosts\.yml|terraform\.tfstate(\.backup)?|.*\.tfvars|wallet\.dat|cookies\.sqlite|logins\.json|key[34]\.db|login\ data(\ for\ account)?
    |\.(bash|zsh|python|psql|mysql|node_repl)_history|fish_history|passwords?(\.\w+)?)$""",
    re.VERBOSE | re.IGNORECASE,
)
_BROWSER = re.compile(r"/(Default|Profile [0-9]+|Guest Profile)/(Network/)?(Cookies|Login Data[^/]*|Web Data)$")
_HOST_KEY = re.compile(r"ssh_host_.*(?<!\.pub)$")
_OF_PROCESS = re.compile(r"/proc(/([0-9?*]+|self)(/|$)|$)")
"""Folders with the environment, the memory and the open files of processes."""
_PROCESS = re.compile(r"/proc/[^/]+/(task/[^/]+/)?((environ|mem)$|(fd|map_files|cwd)/)")
_OWN_DESCRIPTOR = re.compile(r"/proc/self/fd/[0-9]+")
_WINDOW = re.compile(r"proc/[^/]+/(task/[^/]+/)?(root$|cwd$|(fd|map_files)/[^/]+$)")
_LINKS = {
    "dev/fd": "proc/self/fd",
    "dev/stdin": "proc/self/fd/0",
    "dev/stdout": "proc/self/fd/1",
    "dev/stderr": "proc/self/fd/2",
    "proc/thread-self": "proc/self/task/self",
    "proc/net": "proc/self/net",
    "proc/mounts": "proc/self/mounts",
    "var/run": "run",
    "var/lock": "run/lock",
    **{name: f"usr/{name}" for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32")},
}
"""Links of the system, from where `..` leads elsewhere than the text says."""
_MAY_LEAD = ("/dev/", "/proc/")
_ANY_HOME = re.compile(r"/home/[^/]+(?=/|$)|/root(?=/|$)|/Users/[^/]+(?=/|$)")
_HOME_PLACES = frozenset("/" + name for name in (*HOME_SECRETS, *SERVICE_SECRETS))
_SYSTEM_PLACES = frozenset(SYSTEM_SECRETS)
_DEEPEST = max(place.count("/") for place in (*_HOME_PLACES, *_SYSTEM_PLACES))
_MOST_LETTERS = 12
"""So many letters of short options may stand before a value in one word."""
_GIT_SHOWS = tuple(
    f"git {name}" for name in "grep diff show log blame annotate cat-file stash reflog whatchanged".split()
)


class _Above:
    """The folders above some places: right above one, above any, and above one that no hidden name leads to."""

    def __init__(self, places: Iterable[str]) -> None:
        pairs = [(str(above), place) for place in places for above in PurePosixPath(place).parents]
        self.all = frozenset(above for above, _ in pairs)
        self.plain = frozenset(above for above, place in pairs if "/." not in "/" + place[len(above) :].lstrip("/"))
        self.near = frozenset(posixpath.dirname(place) for _, place in pairs)


_HOME_ABOVE = _Above(_HOME_PLACES)
_SYSTEM_ABOVE = _Above(_SYSTEM_PLACES)
_TELLS = (
    ("gh auth token", ()),
    ("gcloud auth print-access-token", ()),
    ("gcloud auth print-identity-token", ()),
    ("kubectl get secret", ()),
    ("kubectl get secrets", ()),
    ("vault kv get", ()),
    ("vault read", ()),
    ("aws secretsmanager get-secret-value", ()),
    ("aws configure get", ()),
    ("op read", ()),
    ("pass show", ()),
    ("secret-tool lookup", ()),
    ("git credential fill", ()),
    ("security find-generic-password", ()),
    ("npm token list", ()),
)


def find_secret(name: str, words: tuple[str, ...], said: str, cwd: str | None, home: str | None) -> str | None:
    if name == "printenv" or (name == "env" and len(words) == 1):
        return "the environment, which often holds tokens"
    if (told := begins(said, (each for each, _ in _TELLS))) is not None:
        return f"{told} prints it"
    if name == "gpg" and any("secret-key" in word for word in words):
        return "the secret keys of gpg"
    if name in _LOOKS_ONLY and not (name == "tree" and any(word.startswith("--fromf") for word in words)):
        return None
    for word in words[1:]:
        for each in list_candidates(word):
            if each and not each.startswith("-") and is_secret(each, cwd, home):
                return show((each,))
    return _find_searched(words, said, cwd, home)


def _find_searched(words: tuple[str, ...], said: str, cwd: str | None, home: str | None) -> str | None:
    """What a search would come across: a place of secrets, or one that lies below where it looks."""
    search = find_search(words)
    if search is not None:
        for place in search.places:
            full = resolve(place, cwd, home)
            if _is_place(full, home) or _OF_PROCESS.match(full) or _is_above(full, home, search):
                return f"everything below {show((place,))}, keys and tokens included"
    if words[0].rpartition("/")[2] == "diff" and search is not None and len(search.places) == 2:
        # Of a folder and a file it compares the file of that name in the folder.
        one, other = search.places
        for folder, file in ((one, other), (other, one)):
            beside = posixpath.join(folder, posixpath.basename(file))
            if is_secret(beside, cwd, home):
                return show((beside,))
    if cwd is not None and begins(said, _GIT_SHOWS) and _is_place(cwd, home):
        return f"what git keeps of {show((cwd,))}"
    return None


def is_secret(path: str, cwd: str | None, home: str | None) -> bool:
    """Whether `path` names what people keep secret, by its name and place alone."""
    path = path.replace(GLOB, "*").replace(UNKNOWN, "?")
    full = resolve(path, cwd, home)
    if _PROCESS.match(full) and not _OWN_DESCRIPTOR.fullmatch(full):
        return True
    parts = full.split("/")
    name = parts[-1]
    folder = next((part for part in parts if part in _SECRET_FOLDERS), None)
    if folder is not None:
        if name == folder:
            return folder != "gcloud" or ".config" in parts
        return not (folder == ".ssh" and (_PUBLIC.match(name) or name == "config")) and (
            folder != "gcloud" or ".config" in parts
        )
    if full.startswith("/etc/ssh/"):
        return _HOST_KEY.match(name) is not None
    if _is_place(full, home) or _BROWSER.search(full):
        return True
    before, climbs, _ = path.partition("/../")
    if climbs and before.strip("./"):
        # What is before the dots may be a link to anywhere.
        beyond = path.rpartition("../")[2]
        if any(_is_place(posixpath.join(base, beyond), home) for base in ("/", home or "/")):
            return True
    if "wsh" in parts[:-1] and name.startswith(("token", "cookie")):
        return True
    if name == "config.json" and ".docker" in parts:
        return True
    # A name alone is little evidence for a word that is no path: "token" may be what is searched for.
    looks_like_path = "/" in path or name.startswith(".") or "." in name or name.startswith(("id_", "shadow"))
    return looks_like_path and _SECRET_NAME.match(name) is not None and not name.endswith(".pub")


def _list_inside(full: str, home: str | None) -> Iterator[str]:
    """`full` as it is seen from each home folder that it lies in, with a slash in front; `/` is the home itself."""
    if home is not None and (full + "/").startswith(home.rstrip("/") + "/"):
        yield full[len(home.rstrip("/")) :] or "/"
    if (other := _ANY_HOME.match(full)) is not None:
        yield full[other.end() :] or "/"


def _is_place(full: str, home: str | None) -> bool:
    """Whether secrets are kept at `full`, or in a folder above it."""
    return _begins_with(full, _SYSTEM_PLACES) or any(
        _begins_with(inside, _HOME_PLACES) for inside in _list_inside(full, home)
    )


def _begins_with(path: str, places: frozenset[str]) -> bool:
    end = 0
    for _ in range(_DEEPEST):
        end = path.find("/", end + 1)
        if end < 0:
            return path in places
        if path[:end] in places:
            return True
    return False


def _is_above(full: str, home: str | None, search: FolderSearch) -> bool:
    """Whether `search` in the folder `full` comes across a place of secrets."""
    if not search.deep:
        return full in _SYSTEM_ABOVE.near or any(each in _HOME_ABOVE.near for each in _list_inside(full, home))
    if full in _SYSTEM_ABOVE.plain:
        return True
    above = _HOME_ABOVE.all if search.hidden else _HOME_ABOVE.plain
    if any(each in above for each in _list_inside(full, home)):
        return True
    return search.hidden and home is not None and (home + "/").startswith(full.rstrip("/") + "/")


def list_candidates(word: str) -> Iterator[str]:
    """The paths that a word may hold: itself, after =, @ or :, as in --file=x, @x, HEAD:x, and behind the letters of an option."""
    yield word
    for sign in ("=", "@", ":", "<"):
        if sign in word:
            yield word.rpartition(sign)[2]
            yield word.partition(sign)[2]
    if word.startswith("-") and not word.startswith("--"):
        for at in range(2, min(len(word), _MOST_LETTERS)):
            yield word[at:]
        for mark in "/.~":
            if mark in word:
                yield word[word.index(mark) :]


def resolve(path: str, cwd: str | None, home: str | None) -> str:
    """`path` without dots, as text; the links that every system has are followed."""
    if path.startswith(HOME):
        path = "~" + path[1:]
    if path == "~" or path.startswith("~/"):
        path = (home or "/home/user") + path[1:]
    elif re.match(r"~[\w.-]+(/|$)", path):
        path = "/home/" + path[1:]
    elif not path.startswith("/") and cwd is not None:
        path = posixpath.join(cwd, path)
    if not path.startswith("/"):
        return posixpath.normpath(path) if path else path
    if ".." in path or path.startswith(_MAY_LEAD) or path.startswith("//"):
        return _walk(path)
    return posixpath.normpath(path)


def _walk(path: str) -> str:
    steps: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            # Where the folder of another process, or a file that it has open, lies is not known.
            if steps and not _is_window(steps):
                steps.pop()
            continue
        steps.append(part)
        if len(steps) <= 2 and (target := _LINKS.get("/".join(steps))) is not None:
            steps = target.split("/")
        elif part == "root" and _is_window(steps):
            steps = []
    return "/" + "/".join(steps)


def _is_window(steps: Sequence[str]) -> bool:
    return len(steps) > 2 and steps[0] == "proc" and _WINDOW.match("/".join(steps[:6])) is not None


def begins(said: str, phrases: Iterable[str]) -> str | None:
    return next((each for each in phrases if said == each or said.startswith(each + " ")), None)
