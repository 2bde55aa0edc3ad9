"""What people keep secret, by name and place, and which commands read it.

Pure: paths are looked at as text. Neighbour of `label`, which tells the findings.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from wsh.policy.parse.word import GLOB, HOME, UNKNOWN, show

_LOOKS_ONLY = frozenset(
    "ls rm rmdir unlink stat test [ chmod chown chgrp touch mkdir du echo printf cd pushd which type tree realpath readlink basename dirname "
    "ssh-keygen ssh-add".split()
)
"""Name files without reading what is in them."""
_SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".password-store", ".aws", ".azure", "gcloud", ".kube", ".vault"})
_PUBLIC = re.compile(r"(known_hosts(\.old)?|authorized_keys|.*\.pub|\.?ssh_config|config\.d)$")
_SECRET_NAME = re.compile(
    r"""(id_(rsa|dsa|ecdsa|ed25519)(_sk)?([._-][\w-]+)?(?<!\.pub)
    |.*\.(pem|key|p12|pfx|jks|kdbx|keystore|ppk|gpg|asc|age|ovpn|nk|creds|fleet\.json)
    |shadow-?|gshadow-?|sudoers|master\.passwd|\.htpasswd|\.?pgpass|\.my\.cnf|\.netrc|_netrc
    |\.env|\.env\.(?!example$|sample$|template$|dist$|schema$)[\w.-]+|[\w-]+\.env
    |\.npmrc|\.pypirc|\.git-credentials|\.vault-token|\.boto|\.s3cfg|credentials(\.\w+)?|\.credentials(\.\w+)?
    |service[-_]?account[\w.-]*\.json|secrets?(\.\w+)?|\.secrets?(\.\w+)?|tokens?(\.(txt|json|ya?ml))?|\.?token
    |kubeconfig|hosts\.yml|terraform\.tfstate(\.backup)?|.*\.tfvars|wallet\.dat|cookies\.sqlite|logins\.json|key[34]\.db
    |\.(bash|zsh|python|psql|mysql|node_repl)_history|passwords?(\.\w+)?)$""",
    re.VERBOSE | re.IGNORECASE,
)
_PROC = re.compile(r"/proc/[^/]+/(environ|mem)$")
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
    if name in _LOOKS_ONLY:
        return None
    for word in words[1:]:
        for each in list_candidates(word):
            if each and not each.startswith("-") and is_secret(each, cwd, home):
                return show((each,))
    recursive = (
        name in ("grep", "egrep", "fgrep", "zgrep")
        and _has_flag(words, "rR", ("--recursive", "--dereference-recursive"))
    ) or (name in ("rg", "ag") and _has_flag(words, "u", ("--hidden", "--unrestricted", "-.")))
    if recursive and home is not None:
        for word in words[1:]:
            if not word.startswith("-") and (home + "/").startswith(resolve(word, cwd, home).rstrip("/") + "/"):
                return f"everything below {show((word,))}, keys and tokens included"
    return None


def is_secret(path: str, cwd: str | None, home: str | None) -> bool:
    """Whether `path` names what people keep secret, by its name and place alone."""
    full = resolve(path.replace(GLOB, "*").replace(UNKNOWN, "?"), cwd, home)
    if _PROC.search(full):
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
    if "wsh" in parts[:-1] and name.startswith(("token", "cookie")):
        return True
    if name == "config.json" and ".docker" in parts:
        return True
    # A name alone is little evidence for a word that is no path: "token" may be what is searched for.
    looks_like_path = "/" in path or name.startswith(".") or "." in name or name.startswith(("id_", "shadow"))
    return looks_like_path and _SECRET_NAME.match(name) is not None and not name.endswith(".pub")


def _has_flag(words: tuple[str, ...], short: str, long: Sequence[str]) -> bool:
    return any(
        word in long or (re.fullmatch(r"-[a-zA-Z]+", word) is not None and any(each in word for each in short))
        for word in words[1:]
    )


def list_candidates(word: str) -> Iterator[str]:
    """The paths that a word may hold: itself, after =, @ or :, as in --file=x, @x, HEAD:x."""
    yield word
    for sign in ("=", "@", ":", "<"):
        if sign in word:
            yield word.rpartition(sign)[2]


def resolve(path: str, cwd: str | None, home: str | None) -> str:
    if path.startswith(HOME):
        path = "~" + path[1:]
    if path == "~" or path.startswith("~/"):
        path = (home or "/home/user") + path[1:]
    elif re.match(r"~[\w.-]+(/|$)", path):
        path = "/home/" + path[1:]
    elif not path.startswith("/") and cwd is not None:
        path = posixpath.join(cwd, path)
    return posixpath.normpath(path) if path else path


def begins(said: str, phrases: Iterable[str]) -> str | None:
    return next((each for each in phrases if said == each or said.startswith(each + " ")), None)
