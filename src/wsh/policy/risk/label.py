"""What a command does beside destroying, in plain words: becomes root, reads secrets, leaves the machine, stays behind, installs code.

Findings for a person to see before they decide. Their absence allows nothing; the shipped headless list, which nobody chose, does not cover
what reads secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from wsh.policy.danger.piped_script import INTERPRETERS, runs_fetched
from wsh.policy.parse.shell import SimpleCommand
from wsh.policy.parse.word import show
from wsh.policy.risk.secret import begins, find_secret, is_secret, list_candidates, resolve


class Label(StrEnum):
    BECOMES_ROOT = "becomes_root"
    READS_SECRETS = "reads_secrets"
    LEAVES_MACHINE = "leaves_machine"
    STAYS_BEHIND = "stays_behind"
    INSTALLS_CODE = "installs_code"

    @property
    def spoken(self) -> str:
        """For people."""
        return self.value.replace("_", " ").replace("leaves machine", "leaves the machine")

    @property
    def wants_hold(self) -> bool:
        """What has left cannot be called back."""
        return self is Label.LEAVES_MACHINE


@dataclass(frozen=True)
class LabelReason:
    """One finding: what a command would do, and which words say so."""

    label: Label
    what: str
    command: str = ""

    def to_wire(self) -> dict[str, str]:
        return {"label": self.label.value, "title": self.label.spoken, "what": self.what, "command": self.command}


_ROOT = frozenset("sudo su pkexec doas run0 sudoedit nsenter".split())
_CONTAINERS = frozenset("docker podman nerdctl".split())
_SENDERS = frozenset(
    "scp sftp ftp nc ncat netcat socat telnet rclone croc ngrok mail mailx sendmail mutt ssh ssh-copy-id".split()
)
_CURL_SENDS = re.compile(
    r"-[a-zA-Z]*[dFT].*|--(data(-\w+)?|form(-string)?|upload-file|json|post-data|post-file|body-data|body-file)(=.*)?$"
)
_METHODS = re.compile(r"(POST|PUT|PATCH|DELETE)$", re.IGNORECASE)
_PUBLISHES = (
    "git push", "git send-email", "git remote-https", "hg push", "svn commit", "npm publish", "yarn publish", "pnpm publish", "cargo publish",
    "gem push", "twine upload", "flit publish", "poetry publish", "uv publish", "docker push", "podman push", "helm push",
    "gh pr create", "gh gist create", "gh release create", "gh release upload", "gh issue create", "gh repo create", "gh pr comment",
    "aws s3 cp", "aws s3 sync", "aws s3 mv", "gsutil cp", "gsutil rsync", "az storage blob", "wormhole send", "cloudflared tunnel",
    "openssl s_client", "kubectl cp",
)  # fmt: skip
_START_FILE = re.compile(
    r"""(^|/)(\.(bash_profile|bashrc|bash_login|bash_logout|profile|zshrc|zprofile|zshenv|zlogin|kshrc|cshrc|tcshrc|xinitrc|xsession|xprofile|pam_environment)
    |config/fish/.*|\.config/fish/.*|\.config/autostart/.*|\.config/systemd/.*|\.ssh/(authorized_keys2?|rc)|\.git/hooks/.*|\.husky/.*|crontab)$
    |^/etc/(profile|profile\.d/.*|bash\.bashrc|zsh/.*|rc\.local|crontab|cron\.[\w]+/.*|cron\.d/.*|systemd/.*|init\.d/.*|ld\.so\.preload|environment|xdg/autostart/.*)$
    |^/(usr/)?lib/systemd/.*|^/var/spool/cron/.*""",
    re.VERBOSE,
)
_WRITERS = frozenset("tee cp mv install ln rsync dd sed truncate patch ed ex sponge curl wget".split())
_INSTALLS = (
    "pip install", "pip3 install", "pipx install", "pipx run", "uv add", "uv sync", "uv pip", "uv tool", "uv run", "poetry add", "poetry install", "pdm add",
    "pdm install", "conda install", "mamba install", "easy_install",
    "npm install", "npm i", "npm ci", "npm add", "npm exec", "npm create", "npm init", "npm update", "yarn install", "yarn add", "yarn dlx", "pnpm install",
    "pnpm i", "pnpm add", "pnpm dlx", "bun install", "bun add", "deno install",
    "apt install", "apt-get install", "apt upgrade", "apt-get upgrade", "apt full-upgrade", "aptitude install", "dnf install", "yum install",
    "zypper install", "apk add", "brew install", "snap install", "flatpak install", "nix-env -i", "dpkg -i", "dpkg --install", "rpm -i", "rpm -U", "rpm -ivh",
    "pacman -S", "pacman -U", "pacman -Sy", "pacman -Syu",
    "cargo install", "cargo add", "go install", "go get", "gem install", "bundle install", "composer install", "composer require",
    "make install", "cmake --install", "ninja install", "code --install-extension", "helm install", "kubectl apply", "docker run", "docker pull", "podman run",
)  # fmt: skip
_RUNS_REMOTE = frozenset("npx bunx pnpx uvx".split())


def find_labels(
    command: SimpleCommand, home: str | None, seen: Sequence[tuple[str, ...]] = ()
) -> Iterator[LabelReason]:
    """Findings about one simple command. `seen` are the commands of the same script so far."""
    words = command.words
    shown = show(words) if words else ""
    for redirect in command.redirects:
        yield from _redirects(redirect.operator, redirect.target, command.cwd, home, shown)
    if not words:
        return
    name = words[0].rpartition("/")[2]
    said = _without_options(name, words)
    for label, what in _facts(name, words, said, command, home, seen):
        yield LabelReason(label, what, shown)


def _facts(
    name: str,
    words: tuple[str, ...],
    said: str,
    command: SimpleCommand,
    home: str | None,
    seen: Sequence[tuple[str, ...]],
) -> Iterator[tuple[Label, str]]:
    if name in _ROOT:
        yield Label.BECOMES_ROOT, f"It runs as another user, most likely root ({name})."
    elif name in _CONTAINERS and _holds_the_machine(words):
        yield Label.BECOMES_ROOT, "It starts a container that has the machine's root: privileged, or with / mounted."
    secret = find_secret(name, words, said, command.cwd, home)
    if secret is not None:
        yield Label.READS_SECRETS, f"It reads what is secret: {secret}."
    leaving = _find_leaving(name, words, said)
    if leaving is not None:
        yield Label.LEAVES_MACHINE, leaving
    staying = _find_staying(name, words, said, command.cwd, home)
    if staying is not None:
        yield Label.STAYS_BEHIND, staying
    installing = _find_installing(name, words, said, command, seen)
    if installing is not None:
        yield Label.INSTALLS_CODE, installing


def _without_options(name: str, words: tuple[str, ...]) -> str:
    """The program and the words after it that are no options, as one text; `python -m pip` is pip."""
    if re.fullmatch(r"python[0-9.]*", name) and len(words) > 2 and words[1] == "-m":
        return _without_options(words[2], words[2:])
    plain = [word for word in words[1:] if not word.startswith("-")]
    if name == "git" and "-C" in words:
        plain = [word for at, word in enumerate(words) if at and not word.startswith("-") and words[at - 1] != "-C"]
    return " ".join([name, *plain[:3]])


def _holds_the_machine(words: tuple[str, ...]) -> bool:
    for at, word in enumerate(words):
        if word == "--privileged" or word.startswith("--privileged=t"):
            return True
        if word in ("--pid=host", "--cap-add=ALL", "--cap-add=SYS_ADMIN"):
            return True
        value = word.partition("=")[2] if "=" in word else words[at + 1] if at + 1 < len(words) else ""
        if word.startswith(("-v", "--volume")):
            given = word[2:] if word.startswith("-v") and len(word) > 2 and word[2] != "o" else value
            if given.lstrip("=").startswith("/:"):
                return True
        if word.startswith("--mount") and re.search(r"(source|src)=/(,|$)", value + "," + word):
            return True
    return False


def _find_leaving(name: str, words: tuple[str, ...], said: str) -> str | None:
    if any("/dev/tcp/" in word or "/dev/udp/" in word for word in words):
        return "It opens a connection to another machine by the shell itself, as reverse shells do."
    if name in _SENDERS and len(words) > 1 and not set(words) & {"--version", "--help", "-V"}:
        return f"It speaks to another machine ({name}), and what it sends cannot be called back."
    if name == "rsync" and any(":" in word and not word.startswith(("-", "/", ".")) for word in words[1:]):
        return "It copies to or from another machine."
    if name in ("curl", "wget", "http", "https"):
        for at, word in enumerate(words[1:], 1):
            value = word.partition("=")[2] or (words[at + 1] if at + 1 < len(words) else "")
            if _CURL_SENDS.match(word) and not (name == "wget" and word.startswith("-") and not word.startswith("--")):
                return "It sends data to another machine, where it cannot be called back."
            asks = re.fullmatch(r"-[a-zA-Z]*X|--(request|method)(=.*)?|-X[A-Z]+", word) is not None
            if asks and (_METHODS.match(value) or _METHODS.match(word[2:])):
                return "It sends a request that changes something on another machine."
    if (told := begins(said, _PUBLISHES)) is not None and not {"--dry-run", "-n"} & set(words):
        return f"It sends to another machine ({told}), where others can have it at once."
    script = " ".join(words)
    if re.search(r"\bsocket\b.*\bconnect\b|pty\.spawn|fsockopen|IO::Socket|TCPSocket", script) and name in INTERPRETERS:
        return "Its script opens a connection to another machine."
    return None


def _find_staying(name: str, words: tuple[str, ...], said: str, cwd: str | None, home: str | None) -> str | None:
    if name == "crontab" and not {"-l", "--list"} & set(words):
        return "It changes what runs by itself at set times (crontab)."
    if name in ("at", "batch") and not {"-l", "-V"} & set(words):
        return "It leaves something to run later (at)."
    if begins(
        said,
        (
            "systemctl enable",
            "systemctl link",
            "systemctl reenable",
            "systemctl edit",
            "launchctl load",
            "launchctl bootstrap",
        ),
    ):
        return "It leaves a unit that starts by itself."
    if name == "systemd-run" and any(word.startswith("--on-") for word in words):
        return "It leaves a timer that starts by itself."
    if begins(said, ("pre-commit install", "husky install", "husky init", "lefthook install")):
        return "It installs git hooks, which run at every commit."
    if said.startswith("git config") and any(
        key in word for word in words for key in ("core.hooksPath", "core.fsmonitor", "core.sshCommand", "alias.")
    ):
        return "It sets what git runs by itself from now on."
    if name in ("useradd", "adduser", "usermod"):
        return "It leaves a user or rights behind."
    if name in _WRITERS or (name in ("chmod",) and any("hooks/" in word for word in words)):
        if name == "sed" and not any(word.startswith(("-i", "--in-place")) for word in words):
            return None
        for word in words[1:]:
            for each in list_candidates(word):
                if _START_FILE.search(resolve(each, cwd, home)):
                    return f"It writes {show((each,))}, which runs or counts by itself later."
    return None


def _redirects(operator: str, target: str, cwd: str | None, home: str | None, shown: str) -> Iterator[LabelReason]:
    if "/dev/tcp/" in target or "/dev/udp/" in target:
        what = "It opens a connection to another machine by the shell itself, as reverse shells do."
        yield LabelReason(Label.LEAVES_MACHINE, what, shown)
    if operator.startswith("<") and operator in ("<", "<>") and is_secret(target, cwd, home):
        yield LabelReason(Label.READS_SECRETS, f"It reads what is secret: {show((target,))}.", shown)
    if ">" in operator and _START_FILE.search(resolve(target, cwd, home)):
        what = f"It writes {show((target,))}, which runs or counts by itself later."
        yield LabelReason(Label.STAYS_BEHIND, what, shown)


def _find_installing(
    name: str, words: tuple[str, ...], said: str, command: SimpleCommand, seen: Sequence[tuple[str, ...]]
) -> str | None:
    if {"--version", "--help", "--dry-run"} & set(words):
        return None
    joined = " ".join([name, *words[1:3]])
    told = begins(said, _INSTALLS) or begins(joined, _INSTALLS)
    if told is not None or (name == "yarn" and len(words) == 1):
        return f"It brings in code from elsewhere and may run it at once ({told or name})."
    if name in _RUNS_REMOTE and len(words) > 1:
        return f"It may fetch a program and runs it ({name})."
    if runs_fetched(name, words, command.stdin is not None, seen):
        return "It runs what it has just fetched, whatever that is."
    return None
