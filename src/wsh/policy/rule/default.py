"""The shipped policy: what runs headless when no policy file says otherwise.

Programs that read, with the arguments their models know to be harmless; versions of common tools. Nothing that
builds, interprets, fetches or writes. Interactively everything asks.
"""

from __future__ import annotations

HEADLESS_ALLOW: tuple[str, ...] = (
    "ls", "cat", "head", "tail", "wc", "nl", "cut", "uniq", "tr", "sort", "comm", "diff", "cmp", "column", "sed",
    "grep", "rg", "find", "tree", "file", "stat", "du", "df", "echo", "pwd", "whoami", "id", "groups", "hostname",
    "uname", "arch", "nproc", "uptime", "free", "date", "which", "basename", "dirname", "realpath", "readlink", "seq",
    "true", "false", "ps", "pgrep", "od", "hexdump", "xxd", "strings", "jq", "md5sum", "sha1sum", "sha256sum",
    "sha512sum", "cksum", "lsblk", "lscpu", "locale",
    "git status", "git log", "git diff", "git show", "git branch", "git tag", "git remote", "git stash list",
    "git stash show", "git rev-parse", "git rev-list", "git describe", "git blame", "git ls-files", "git ls-tree",
    "git grep", "git reflog", "git shortlog", "git merge-base", "git cat-file", "git show-ref", "git for-each-ref",
    "git worktree list", "git check-ignore", "git count-objects", "git --version", "git version",
    "python --version", "python3 --version", "node --version", "npm --version", "cargo --version", "rustc --version",
    "python -V", "python3 -V", "node -v", "npm -v", "cargo -V", "rustc -V", "java --version", "go version", "gcc --version", "make --version", "cmake --version", "java -version", "docker --version",
    "pip --version", "uv --version", "ruby --version", "php --version",
)  # fmt: skip

ENV_ALLOW: tuple[str, ...] = (
    "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS", "LINES",
    "CI",
)  # fmt: skip
