"""Repositories that try to run something: every setting that could name a program, at every place it can stand.

Each trap is a program of its own that leaves a file named after it, so that a test can say what sprang.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wsh.git.guard import index_query, query
from wsh.policy.execute.launch import minimal_environment, prepare
from wsh.wire.error import Refused

# Names of drivers, as bytes of a configuration file and of .gitattributes.
DRIVERS: tuple[bytes, ...] = (
    b"evil", b"EVIL", b"e\xef\xbf\xbdvil", b"raw\xff\xfe", b"a=b", b"a.b.c", b'quo"te', b"back\\slash", "\u00e9\u4e2d".encode(), b"-x", b"\xee\x80\x80",
    b"clean", b"#hash", b"semi;colon",
)  # fmt: skip
# Keys of git's documentation, of newer versions and of common helpers. `*` stands for the name of a driver.
EXECUTABLE: tuple[str, ...] = tuple(
    "core.fsmonitor core.pager core.editor core.sshCommand core.askPass core.gitProxy core.alternateRefsCommand core.hooksPath "
    "core.virtualFilesystem sequence.editor interactive.diffFilter diff.external diff.*.textconv diff.*.command filter.*.clean filter.*.smudge "
    "filter.*.process merge.*.driver gpg.program gpg.openpgp.program gpg.x509.program gpg.ssh.program gpg.ssh.defaultKeyCommand "
    "credential.helper credential.https://x.helper remote.origin.uploadpack remote.origin.receivepack remote.origin.vcs "
    "uploadpack.packObjectsHook gc.recentObjectsHook receive.procReceiveRefs submodule.inner.update man.evil.cmd man.evil.path browser.evil.cmd "
    "browser.evil.path help.browser web.browser instaweb.browser instaweb.httpd difftool.evil.cmd difftool.evil.path mergetool.evil.cmd "
    "mergetool.evil.path diff.guitool guitool.evil.cmd trailer.evil.command trailer.evil.cmd hook.evil.command imap.tunnel sendemail.smtpServer "
    "sendemail.toCmd sendemail.ccCmd tar.evil.command lfs.extension.evil.clean lfs.customtransfer.evil.path pager.status pager.log pager.diff "
    "pager.show pager.branch pager.tag pager.grep pager.blame pager.stash pager.reflog pager.config pager.worktree pager.shortlog alias.status "
    "alias.log alias.diff alias.whatchanged alias.stash alias.st init.templateDir core.gitProxy http.proxy gitcvs.dbDriver core.attributesFile".split()
)
# What makes git look where it otherwise would not.
_ENABLING = b"""[man]
\tviewer = evil
[web]
\tbrowser = evil
[log]
\tshowSignature = true
\tdiffMerges = remerge
[format]
\tpretty = format:%h %G? %GK %s %(describe)
[gpg]
\tformat = openpgp
[status]
\tsubmoduleSummary = true
\tshowUntrackedFiles = all
[diff]
\tsubmodule = diff
\tignoreSubmodules = none
\ttool = evil
[merge]
\ttool = evil
\tdefault = evil
[submodule]
\trecurse = true
\tpropagateBranches = true
[submodule "inner"]
\tignore = none
\tactive = true
[submodule "loose"]
\tignore = none
\tactive = true
[pager]
\tls-files = true
[column]
\tui = always
[color]
\tui = always
[protocol]
\tallow = always
[protocol "ext"]
\tallow = always
[protocol "file"]
\tallow = always
[hook "evil"]
\tevent = post-index-change
\tevent = reference-transaction
[fetch]
\tbundleURI = ext::sh
[lfs]
\tstandalonetransferagent = evil
[commitGraph]
\treadChangedPaths = false
"""
_HOOKS = (
    "post-index-change", "pre-auto-gc", "fsmonitor-watchman", "post-checkout", "reference-transaction", "query-watchman", "pre-push",
)  # fmt: skip


def commands() -> list[str]:
    """Reading commands as agents write them; the shipped policy allows every one."""
    return [line for line in _COMMANDS.splitlines() if line]


_COMMANDS = """\
git status
git status --porcelain=v2 --ignored -uall
git status -v
git status -vv --short --branch
git status --ignore-submodules
git status -- a0.txt
git diff
git diff --cached
git diff --stat HEAD
git diff -w --word-diff HEAD
git diff --name-status --submodule=log HEAD
git diff HEAD~1 HEAD
git diff --check
git diff --submodule=short
git log -p -2
git log -p -m --all
git log --oneline --graph --all
git log --stat --summary --all
git log -c -p --all
git log --cc --all
git log --follow -p -- a0.txt
git log -S a -p
git log -L 1,1:a0.txt
git log --pretty=evil
git log --submodule -p
git show HEAD
git show -m -p merged
git show merged
git show HEAD:a0.txt
git show --stat HEAD~1
git blame a0.txt
git blame -w -C a1.txt
git blame --porcelain a2.txt
git grep -n a
git grep -n a HEAD
git grep --untracked a
git stash list
git stash list -p
git stash list --stat
git stash show
git stash show -p
git branch -a
git branch -vv
git branch --list
git branch --merged
git branch --contains HEAD
git tag -l
git tag
git remote -v
git remote get-url origin
git reflog
git reflog show -p
git reflog -p
git ls-files
git ls-files -m
git ls-files -s
git ls-files -o --exclude-standard
git ls-files --eol
git ls-tree -r HEAD
git describe --always
git describe --always --dirty
git describe --always --broken
git describe --contains --all HEAD
git cat-file -p HEAD:a0.txt
git cat-file -t HEAD
git shortlog -sn HEAD
git rev-parse HEAD
git rev-parse --show-toplevel
git rev-parse --show-superproject-working-tree
git rev-list --all --count
git rev-list --objects --all
git merge-base HEAD HEAD~1
git show-ref
git for-each-ref
git worktree list
git check-ignore a0.txt
git count-objects -v
"""


class Traps:
    """Programs that leave a file when they run."""

    def __init__(self, folder: Path) -> None:
        self._programs = folder / "program"
        self._sprung = folder / "sprung"
        self._programs.mkdir(parents=True)
        self._sprung.mkdir()
        self._known: dict[str, Path] = {}

    def set(self, name: str) -> bytes:
        """A program that runs under any way git has of running one: by a shell, with arguments, or by its path."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._programs / f"trap{len(self._known)}"
            # A transport that echoes what it is told would keep git waiting.
            then = "false" if ":remote." in name else "cat"
            found.write_text(f"#!/bin/sh\n: > '{self._sprung}/{_plain(name)}'\nexec {then}\n")
            found.chmod(0o755)
        return os.fsencode(found)

    def sprung(self) -> list[str]:
        return sorted(os.listdir(self._sprung))

    def reset(self) -> None:
        for path in self._sprung.iterdir():
            path.unlink()


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.:-]", "_", name)


def git(cwd: Path, *words: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@b", f"GIT_{who}_DATE": "1700000000 +0000"}
    allow = ("-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *allow, *words], cwd=cwd, env=env, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def entry(key: str, value: bytes, driver: bytes = b"evil") -> bytes:
    """One setting as it stands in a configuration file."""
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    shown = driver if middle == "*" else middle.encode()
    quoted = b' "' + shown.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"' if middle else b""
    return b"[" + section.encode() + quoted + b"]\n\t" + name.encode() + b" = " + value + b"\n"


def settings(traps: Traps, place: str, keys: Sequence[str] = EXECUTABLE) -> bytes:
    """A configuration file in which every key names a trap that is called after the key and the place."""
    lines = [_ENABLING, b'[pretty]\n\tevil = "format:%G? %GG"\n']
    for key in keys:
        if key == "core.hooksPath":
            hooks = Path(os.fsdecode(traps.set("hooks"))).parent / "hooks"
            hooks.mkdir(exist_ok=True)
            for hook in _HOOKS:
                if not (hooks / hook).exists():
                    (hooks / hook).symlink_to(os.fsdecode(traps.set(f"hook-{hook}")))
            lines.append(entry(key, os.fsencode(hooks)))
        elif ".*." in key:
            for number, driver in enumerate(DRIVERS):
                lines.append(entry(key, traps.set(f"{place}:{key}:{number}"), driver))
        else:
            shell = b"!" if key.startswith("alias.") or key == "submodule.inner.update" else b""
            lines.append(entry(key, shell + traps.set(f"{place}:{key}")))
    return b"".join(lines)


def template(folder: Path) -> Path:
    """A repository with history, a merge, a signed commit, a stash, submodules, and drivers for every file."""
    repository = folder / "template"
    inner = folder / "inner-origin"
    for where in (repository, inner):
        where.mkdir(parents=True)
        git(where, "init", "-q")
        attributes = b"".join(
            b"[ab]%d.txt filter=%s diff=%s merge=%s\n" % (number, driver, driver, driver)
            for number, driver in enumerate(DRIVERS)
        )
        for number in range(len(DRIVERS)):
            (where / f"a{number}.txt").write_text("a\nb\nc\n")
            (where / f"b{number}.txt").write_text("b\n")
        git(where, "add", ".")
        git(where, "commit", "-qm", "one")
        (where / ".gitattributes").write_bytes(attributes)
        _append(where, "side")
        git(where, "add", ".")
        git(where, "commit", "-qam", "two")
    git(repository, "checkout", "-qb", "merged", "HEAD~1")
    _append(repository, "other")
    git(repository, "commit", "-qam", "other")
    git(repository, "merge", "-q", "-s", "ours", "main", "-m", "merge")
    git(repository, "checkout", "-q", "main")
    _sign(repository)
    _append(repository, "stashed")
    git(repository, "stash")
    git(repository, "submodule", "add", "-q", str(inner), "inner")
    git(repository, "commit", "-qm", "submodule")
    shutil.copytree(inner, repository / "loose")
    git(repository, "add", "loose")
    git(repository, "commit", "-qm", "a repository that .gitmodules does not list")
    modules = repository / ".gitmodules"
    modules.write_bytes(modules.read_bytes() + b"\tignore = none\n\tupdate = checkout\n")
    for where in (repository, repository / "inner", repository / "loose"):
        _append(where, "changed")
    (repository / "below").mkdir()
    (repository / "below/untracked").write_text("x")
    return repository


def _append(where: Path, line: str) -> None:
    for number in range(len(DRIVERS)):
        with (where / f"a{number}.txt").open("a") as file:
            file.write(line + "\n")


def _sign(repository: Path) -> None:
    """A commit with something that looks like a signature, so that git would have it checked."""
    env = {"PATH": os.environ["PATH"], "HOME": str(repository)}
    raw = subprocess.run(
        ["git", "cat-file", "commit", "HEAD"], cwd=repository, env=env, check=True, capture_output=True
    )
    head, _, message = raw.stdout.partition(b"\n\n")
    signature = b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----"
    made = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
        cwd=repository, env=env, check=True, capture_output=True, input=head + b"\n" + signature + b"\n\n" + message,
    )  # fmt: skip
    git(repository, "reset", "-q", "--soft", made.stdout.decode().strip())


@dataclass(frozen=True)
class Hostile:
    """A place where settings stand, and the folder in which a command meets them."""

    place: str
    cwd: Path


def _base(root: Path) -> bytes:
    return (root / ".git/config").read_bytes()


def _own(root: Path, evil: bytes) -> Path:
    (root / ".git/config").write_bytes(_base(root) + evil)
    return root


def _below(root: Path, evil: bytes) -> Path:
    return _own(root, evil) / "below"


def _worktree_config(root: Path, evil: bytes) -> Path:
    _own(root, b"[extensions]\n\tworktreeConfig = true\n")
    (root / ".git/config.worktree").write_bytes(evil)
    return root


def _including(condition: bytes) -> Callable[[Path, bytes], Path]:
    def apply(root: Path, evil: bytes) -> Path:
        (root / "included").write_bytes(b"[include]\n\tpath = below/deeper\n")
        (root / "below/deeper").write_bytes(evil)
        remote = b'[remote "up"]\n\turl = https://example.invalid/x\n'
        return _own(root, remote + condition + b"\n\tpath = ../included\n")

    return apply


def _gitdir_file(root: Path, evil: bytes) -> Path:
    _own(root, evil)
    (root / ".git").rename(root.parent / "elsewhere")
    (root / ".git").write_text("gitdir: ../elsewhere\n")
    git(root, "config", "core.worktree", str(root))
    return root


def _symlinked(root: Path, evil: bytes) -> Path:
    _own(root, evil)
    (root / ".git").rename(root.parent / "elsewhere")
    (root / ".git").symlink_to("../elsewhere")
    return root


def _commondir(root: Path, evil: bytes) -> Path:
    common = root.parent / "common"
    shutil.copytree(root / ".git", common)
    (common / "config").write_bytes(_base(root) + evil)
    (root / ".git/commondir").write_text("../../common\n")
    return root


def _linked(root: Path, evil: bytes) -> Path:
    tree = root.parent / "linked"
    git(root, "worktree", "add", "-q", "--detach", str(tree))
    _append(tree, "changed")
    _own(root, evil)
    return tree


def _linked_config(root: Path, evil: bytes) -> Path:
    tree = _linked(root, b"[extensions]\n\tworktreeConfig = true\n")
    (root / ".git/worktrees/linked/config.worktree").write_bytes(evil)
    return tree


def _submodule(root: Path, evil: bytes) -> Path:
    config = root / ".git/modules/inner/config"
    config.write_bytes(config.read_bytes() + evil)
    return root


def _loose_submodule(root: Path, evil: bytes) -> Path:
    _own(root / "loose", evil)
    return root


def _in_submodule(root: Path, evil: bytes) -> Path:
    return _submodule(root, evil) / "inner"


def _superproject(root: Path, evil: bytes) -> Path:
    return _own(root, evil) / "inner"


def _both(root: Path, evil: bytes) -> Path:
    _submodule(root, evil)
    _own(root / "loose", evil)
    # The names of the superproject's drivers are replaced; those of the submodule are not among them.
    return _own(root, _ENABLING)


def _bare(root: Path, evil: bytes) -> Path:
    bare = root / "below/bare"
    shutil.copytree(root / ".git", bare)
    (bare / "config").write_bytes(_base(root).replace(b"bare = false", b"bare = true") + evil)
    return bare


def _partial(url: bytes) -> Callable[[Path, bytes], Path]:
    def apply(root: Path, evil: bytes) -> Path:
        promise = b'[remote "origin"]\n\turl = %s\n\tpromisor = true\n\tpartialclonefilter = blob:none\n' % url
        shutil.rmtree(root / ".git/modules")
        blobs = subprocess.run(
            ["git", "rev-parse", "HEAD:a0.txt", "HEAD~1:a1.txt", "HEAD:.gitattributes"],
            cwd=root, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for blob in set(blobs.stdout.split()):
            (root / ".git/objects" / blob[:2] / blob[2:]).unlink(missing_ok=True)
        version = b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"
        # Another transport would hide the rest.
        return _own(root, version + promise + re.sub(rb"\tvcs = .*\n", b"", evil))

    return apply


def _alternates(root: Path, evil: bytes) -> Path:
    other = root.parent / "other"
    shutil.copytree(root / ".git", other / ".git")
    (other / ".git/config").write_bytes(_base(root) + evil)
    (root / ".git/objects/info/alternates").write_text(f"{other}/.git/objects\n")
    return _own(root, evil)


PLACES: dict[str, Callable[[Path, bytes], Path]] = {
    "config": _own,
    "subfolder": _below,
    "config.worktree": _worktree_config,
    "include": _including(b"[include]"),
    "includeIf-gitdir": _including(b'[includeIf "gitdir:**"]'),
    "includeIf-onbranch": _including(b'[includeIf "onbranch:**"]'),
    "includeIf-hasconfig": _including(b'[includeIf "hasconfig:remote.*.url:**"]'),
    "gitdir-file": _gitdir_file,
    "gitdir-link": _symlinked,
    "commondir": _commondir,
    "linked-worktree": _linked,
    "linked-worktree-config": _linked_config,
    "submodule": _submodule,
    "loose-submodule": _loose_submodule,
    "both-submodules": _both,
    "in-submodule": _in_submodule,
    "superproject": _superproject,
    "bare-below": _bare,
    "partial-ext": _partial(b"ext::sh -c 'cat'"),
    "partial-path": _partial(b"../template"),
    "partial-ssh": _partial(b"ssh://example.invalid/x"),
    "partial-git": _partial(b"git://example.invalid/x"),
    "alternates": _alternates,
}


def build(template_folder: Path, folder: Path, place: str, evil: bytes) -> Hostile:
    """A copy of the template in `folder`, made hostile at `place`."""
    root = folder / "repository"
    shutil.copytree(template_folder, root, symlinks=True)
    cwd = PLACES[place](root, evil)
    # A file of the old size and a new time makes git compare contents, and so does an index that is older.
    for touched in (*folder.rglob("b*.txt"), *folder.rglob("index")):
        os.utime(touched, (1, 1))
    return Hostile(place, cwd)


def run_bare(argv: Sequence[str], cwd: Path, home: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    subprocess.run(argv, cwd=cwd, env=env, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)


def run_guarded(argv: tuple[str, ...], cwd: Path, home: Path) -> subprocess.CompletedProcess[bytes]:
    """As a headless command runs; raises Refused."""
    env = minimal_environment({"PATH": os.environ["PATH"], "HOME": str(home)}, {})

    def execute(words: tuple[str, ...], configured: bytes, index: bytes | None) -> subprocess.CompletedProcess[bytes]:
        with prepare(words, os.path.realpath(cwd), env, git_settings=configured, git_index=index) as launch:
            return subprocess.run(
                launch.argv,
                executable=launch.path,
                cwd=f"/proc/self/fd/{launch.cwd_fd}",
                env=launch.env,
                capture_output=True,
                pass_fds=(launch.cwd_fd,),
                stdin=subprocess.DEVNULL,
                timeout=60,
            )

    asked = execute(query(argv), b"", None)
    if asked.returncode:
        raise Refused(asked.stderr.decode("utf-8", "replace"))
    tracked = index_query(argv)
    return execute(argv, asked.stdout, None if tracked is None else execute(tracked, asked.stdout, None).stdout)


def documented() -> Iterator[str]:
    """Every key in the documentation of the git at hand, its placeholders filled in."""
    listed = subprocess.run(["git", "help", "--config-for-completion"], capture_output=True, text=True, check=True)
    for line in listed.stdout.split():
        section, _, rest = line.partition(".")
        if not rest or line.startswith(("include", "extensions.", "core.repositoryFormat", "core.bare")):
            continue
        middle, _, name = rest.rpartition(".")
        if "<" in middle or "*" in middle:
            middle = "*" if section in ("diff", "filter", "merge") else "origin" if section == "remote" else "evil"
        name = "evil" if "<" in name or "*" in name or not name else name
        yield f"{section}.{middle}.{name}" if middle else f"{section}.{name}"
