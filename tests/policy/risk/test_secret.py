"""The shipped headless list reads no secrets: by no spelling of a search or an option, and by no way through /proc; ordinary work goes on."""

from __future__ import annotations

import shlex

import pytest

from wsh.policy import Mode, PolicyRequest, Verdict, decide, default_policy
from wsh.sandbox.secret import HOME_SECRETS, SERVICE_SECRETS, SYSTEM_SECRETS

HOME = "/home/ann"
WORK = f"{HOME}/work"

PROCESS = [
    "cat /proc/7/environ",
    "cat /proc/7/task/8/environ",
    "cat /proc//7/./environ",
    "cat //proc/7/environ",
    "cat /proc/thread-self/environ",
    "grep -aoh 'X=[a-z0-9]*' /dev/fd/../../7/environ",
    "cat /dev/fd/../environ",
    "cat /dev/stdin/../../environ",
    "cat /proc/thread-self/../../../7/environ",
    "cat /proc/self/cwd/../.ssh/id_rsa",
    "cat /proc/7/fd/5",
    "cat /proc/7/map_files/1-2",
    "cat /proc/self/root/etc/wireguard/wg0.conf",
    f"cat /proc/self/root{HOME}/.codex/auth.json",
    "grep -raoh X=. /proc/7/task --include=environ",
    "grep -r X= /proc/7",
    "grep -r X= /proc",
    "grep -d recurse X= /proc/self/",
    "rg -aoIN X=. /proc/7/task",
    "rg X= /proc",
    "diff -r /proc/7 /proc/8",
    "rg X= /dev/fd/..",
]
SEARCHES = [
    (f"{HOME}/.ssh", "grep -reCANARY"),
    (f"{HOME}/.ssh", "grep -r CANARY"),
    (f"{HOME}/.ssh", "rg -eCANARY"),
    (f"{HOME}/.ssh", "rg CANARY"),
    (f"{HOME}/.ssh", "git grep CANARY"),
    (f"{HOME}/.ssh", "git diff"),
    (HOME, "grep -r CANARY"),
    (HOME, "grep -reCANARY"),
    (HOME, "grep -R -e CANARY"),
    (HOME, "grep -drecurse CANARY"),
    (HOME, "grep -d recurse -e CANARY"),
    (HOME, "grep --directories=recurse CANARY"),
    (HOME, "grep --directories recurse CANARY ."),
    (HOME, "grep -r CANARY ."),
    (HOME, "rg -uu CANARY"),
    (HOME, "rg -a.eCANARY"),
    (HOME, "rg -. CANARY"),
    (HOME, "rg --hidden -e CANARY"),
    (HOME, "rg -g '*' CANARY"),
    (HOME, "rg -g'**' CANARY"),
    (HOME, "rg --glob=.ssh --glob '.ssh/*' CANARY"),
    (HOME, "rg --iglob '.S[a-s]H' CANARY"),
    (HOME, "rg --type-add x:.netrc -tx CANARY"),
    (HOME, "rg --ignore-file list CANARY"),
    (HOME, "rg CANARY .config"),
    (HOME, "git grep --untracked CANARY"),
    (HOME, "diff -rN . empty"),
    (HOME, "diff -N . empty"),
    ("/home", "grep -r CANARY"),
    ("/", "rg CANARY"),
    ("/etc", "grep -r CANARY"),
    (f"{HOME}/.config", "rg CANARY"),
    (f"{HOME}/.config", "grep -r CANARY"),
    (f"{HOME}/.local", "rg CANARY"),
    (f"{HOME}/.config/op", "rg CANARY"),
    (WORK, "rg -a. CANARY ~"),
    (WORK, "rg -uu CANARY .."),
    (WORK, "rg -e CANARY -uu ~"),
    (WORK, "rg --regexp CANARY --hidden /home"),
    (WORK, "grep -r CANARY //home/ann"),
    (WORK, "grep -r CANARY ~/.local/share"),
    (WORK, "grep -rf patterns ~/.codex"),
    (WORK, "diff -rN ~ empty"),
    (WORK, "diff -N --recursive empty ~/.config"),
    (WORK, "diff ~/.codex auth.json"),
    (WORK, "diff hosts ~/.config/gh"),
    (WORK, "diff x/login.keyring ~/.local/share/keyrings"),
]
ATTACHED = [
    "git blame -S/home/ann/.ssh/id_ed25519 f",
    "git blame -S ~/.ssh/id_ed25519 f",
    "git blame -Srevisions f",
    "git annotate -Srevisions f",
    "grep -f/home/ann/.ssh/id_ed25519 f",
    "grep -nf/home/ann/.ssh/id_ed25519 f",
    "grep -nf../.ssh/id_ed25519 f",
    "grep --file=/home/ann/.ssh/id_ed25519 f",
    "rg -af.env f",
    "git ls-files -oX../.aws/credentials",
    "tree --fromfile ~/.ssh/id_rsa",
    "tree --fromfile .env",
]
FILES = [
    "~/.codex/auth.json",
    "~/.claude/.credentials.json",
    "~/.local/share/keyrings/login.keyring",
    "~/.config/google-chrome/Default/Cookies",
    "'/home/ann/.config/google-chrome/Default/Login Data'",
    "~/.config/chromium/Default/Cookies",
    "'/srv/copy/Login Data'",
    "~/.config/op/config",
    "~/.config/gh/hosts.yml",
    "~/.mozilla/firefox/x.default/sessionstore.jsonlz4",
    "~/.terraform.d/credentials.tfrc.json",
    "~/.docker/contexts/tls/x/key",
    "/home/bob/.codex/auth.json",
    "/root/.config/op/config",
    "~bob/.config/op/config",
    ".envrc",
    "sub/.envrc",
    "~/.local/share/fish/fish_history",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/../ssh/ssh_host_rsa_key",
    "//etc/wireguard/wg0.conf",
    "/etc/wireguard/wg0.conf",
    "/etc/sudoers.d/admins",
    "/etc/krb5.keytab",
    "service.keytab",
    "/etc/NetworkManager/system-connections/home.nmconnection",
]
ORDINARY = [
    (WORK, "grep -r CANARY"),
    (WORK, "grep -rn CANARY ."),
    (WORK, "grep -r CANARY src tests"),
    (WORK, "grep -rnI --include=*.py CANARY src"),
    (WORK, "grep -R -e CANARY src"),
    (WORK, "rg CANARY"),
    (WORK, "rg -uu CANARY"),
    (WORK, "rg --hidden -g '!.git' CANARY"),
    (WORK, "rg -g '*.py' CANARY src"),
    (WORK, "rg -a. CANARY src"),
    (WORK, "rg CANARY ~/other/src"),
    (WORK, "grep -r CANARY ~/other"),
    (WORK, "grep -r home /usr/share/doc/x"),
    (WORK, "grep -r CANARY /etc/nginx"),
    (WORK, "grep -r swappiness /proc/sys/vm"),
    (WORK, "grep -r ~ src"),
    (WORK, "grep -re / src"),
    (WORK, "rg -e .. -uu src"),
    (WORK, "diff -r a b"),
    (WORK, "diff -ruN ../other ."),
    (WORK, "diff ~/other/a ~/work/a"),
    (WORK, "git blame -L1,20 -w src/a.py"),
    (WORK, "git diff --stat"),
    (WORK, "git grep --untracked CANARY"),
    (WORK, "git grep CANARY -- src"),
    (WORK, "git log -SCANARY"),
    (HOME, "rg CANARY work"),
    (HOME, "rg CANARY"),
    (HOME, "rg -g '*.py' CANARY"),
    (HOME, "grep CANARY notes.txt"),
    (HOME, "grep -r CANARY work"),
    (HOME, "git grep CANARY"),
    (HOME, "git status"),
    (HOME, "diff a.txt b.txt"),
    (f"{WORK}/tokens", "rg CANARY"),
    (f"{WORK}/.docker", "rg CANARY"),
    (WORK, "cat src/a.py"),
    (WORK, "cat .docker/nginx.conf"),
    (WORK, "cat .github/workflows/ci.yml"),
    (WORK, "cat /etc/hosts"),
    (WORK, "cat /etc/ssh/ssh_config"),
    (WORK, "cat /etc/ssh/sshd_config"),
    (WORK, "cat /etc/ssh/sshd_config.d/x.conf"),
    (WORK, "cat /etc/ssh/ssh_host_rsa_key.pub"),
    (WORK, "cat ~/.config/nvim/init.lua"),
    (WORK, "cat ~/.codex/config.toml"),
    (WORK, "cat /proc/cpuinfo"),
    (WORK, "cat /proc/self/status"),
    (WORK, "cat /proc/7/cmdline"),
    (WORK, "cat /dev/stdin"),
    (WORK, "cat /dev/fd/0"),
    (WORK, "ls -la ~/.ssh"),
    (WORK, "tree -L 2 src"),
    (WORK, "head -n5 a.py"),
    (WORK, "sort -t. -k1 list"),
]


def decide_in(cwd: str, command: str) -> Verdict:
    argv = tuple(HOME + word[1:] if word == "~" or word.startswith("~/") else word for word in shlex.split(command))
    return decide(PolicyRequest(argv=argv, cwd=cwd, home=HOME, mode=Mode.HEADLESS), default_policy())


@pytest.mark.parametrize("command", PROCESS)
def test_the_environment_and_the_files_of_a_process_are_not_read_unasked(command: str) -> None:
    verdict = decide_in(WORK, command)
    assert not verdict.allowed and "secret" in verdict.message, verdict


@pytest.mark.parametrize(("cwd", "command"), SEARCHES)
def test_a_search_that_comes_across_secrets_is_not_made_unasked(cwd: str, command: str) -> None:
    verdict = decide_in(cwd, command)
    assert not verdict.allowed and "secret" in verdict.message, verdict


@pytest.mark.parametrize("command", ATTACHED)
def test_a_secret_as_the_value_of_an_option_is_not_read_unasked(command: str) -> None:
    assert not decide_in(WORK, command).allowed


@pytest.mark.parametrize("file", FILES)
def test_a_place_of_secrets_is_not_read_unasked(file: str) -> None:
    verdict = decide_in(WORK, f"cat {file}")
    assert not verdict.allowed and "secret" in verdict.message, verdict


@pytest.mark.parametrize(("cwd", "command"), ORDINARY)
def test_ordinary_work_goes_on_unasked(cwd: str, command: str) -> None:
    verdict = decide_in(cwd, command)
    assert verdict.allowed, verdict


@pytest.mark.parametrize("place", [*(f"{HOME}/{name}" for name in (*HOME_SECRETS, *SERVICE_SECRETS)), *SYSTEM_SECRETS])
def test_what_a_sandbox_closes_is_not_read_unasked(place: str) -> None:
    assert not decide_in(WORK, f"cat '{place}'").allowed
    assert not decide_in(WORK, f"grep -r x '{place}'").allowed
