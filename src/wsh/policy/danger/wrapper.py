"""Programs that run another program: what they wrap is looked at as if it stood alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from wsh.policy.danger.model import RiskModel, Scene, program
from wsh.policy.parse.option import Arguments
from wsh.policy.parse.word import UNKNOWN
from wsh.policy.verdict import Kind, RiskReason

_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")


def inner_argv(rest: Sequence[str], skip: int) -> list[str]:
    """`rest` without `skip` operands, assignments and a `--`."""
    left = list(rest[skip:])
    while left and (_ASSIGNMENT.match(left[0]) or left[0] == "--"):
        left.pop(0)
    return left


def _wraps(values: str = "", skip: int = 0) -> RiskModel:
    def check(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
        inner = inner_argv(arguments.rest, skip)
        if inner:
            yield from scene.look(inner, scene.stdin)

    return program(check=check, values=values, permute=False)


def _env(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    for text in arguments.values("-S", "--split-string"):  # what is split may begin with more options
        yield from scene.look_text(" ".join(["env", text, *arguments.rest]))
    inner = inner_argv(arguments.rest, 1 if arguments.rest[:1] == ["-"] else 0)  # `env -` is `env -i`
    if inner and not arguments.has("-S", "--split-string"):
        yield from scene.look(inner, scene.stdin)


def _text_option(options: str, values: str, joined: bool, skip: int = 0) -> RiskModel:
    """`su -c TEXT`, `script -c TEXT`; without it the rest is argv, or one text if `joined`."""
    names = tuple(options.split())

    def check(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
        text = arguments.value(*names) if names else None
        if text is not None:
            yield from scene.look_text(text)
            return
        inner = inner_argv(arguments.rest, skip)
        if inner and inner[0] in ("-c", "--command") and len(inner) > 1:
            yield from scene.look_text(inner[1])
        elif inner and joined:
            yield from scene.look_text(" ".join(inner))
        elif inner:
            yield from scene.look(inner, scene.stdin)

    return program(check=check, values=f"{values} {options}", permute=False)


def _su(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    """`su - NAME -c TEXT`, `su NAME -- -c TEXT`, `runuser -u NAME -- PROGRAM ARGS`."""
    operands = arguments.operands
    text = arguments.value("-c", "--command", "--session-command")
    if text is None and "-c" in operands[:-1]:
        text = operands[operands.index("-c") + 1]
    if text is not None:
        yield from scene.look_text(text)
    elif operands and arguments.has("-u", "--user"):
        yield from scene.look(operands, scene.stdin)


_BWRAP_VALUES = {
    **dict.fromkeys(
        "bind bind-try dev-bind dev-bind-try ro-bind ro-bind-try symlink setenv file bind-data ro-bind-data chmod "
        "bind-fd ro-bind-fd".split(),
        2,
    ),
    **dict.fromkeys(
        "share-net die-with-parent new-session as-pid-1 clearenv disable-userns assert-userns-disabled level-prefix "
        "unshare-all unshare-user unshare-user-try unshare-ipc unshare-pid unshare-net unshare-uts unshare-cgroup "
        "unshare-cgroup-try".split(),
        0,
    ),
    "overlay": 3,
}


def _bwrap(_arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    """Options of bwrap take none, one, two or three values."""
    start = 1
    while start < len(scene.words) and scene.words[start].startswith("--"):
        if scene.words[start] == "--":
            start += 1
            break
        start += 1 + _BWRAP_VALUES.get(scene.words[start][2:], 1)
    if start < len(scene.words):
        yield from scene.look(scene.words[start:], scene.stdin)


_SSH_COMMAND = re.compile(r"\s*(?:proxy|local|remote|knownhosts)command\s*[=\s]\s*(.+)", re.IGNORECASE | re.DOTALL)


def _ssh(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    for setting in arguments.values("-o"):
        if match := _SSH_COMMAND.match(setting):
            yield from scene.look_text(match[1])
    inner = inner_argv(arguments.rest, 1)
    if inner:
        yield from scene.look_text(" ".join(inner))


def _gdb(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    for option in ("--args", "-args"):
        if option in scene.words[:-1]:
            yield from scene.look(scene.words[scene.words.index(option) + 1 :])
    for text in arguments.values("-ex", "--ex", "--eval-command", "-eval-command"):
        if match := re.match(r"\s*(?:shell\s|!)(.*)", text, re.DOTALL):
            yield from scene.look_text(match[1])


def _ansible(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    text = arguments.value("-a", "--args")
    module = (arguments.value("-m", "--module-name") or "command").rpartition(".")[2]
    if text is not None and module in ("command", "shell", "raw"):
        yield from scene.look_text(text)


def _later(_arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if scene.stdin == UNKNOWN:
        yield scene.found(Kind.UNKNOWN, "runs whatever another program prints")
    elif scene.stdin:
        yield from scene.look_text(scene.stdin)


def _pager(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    for text in arguments.values("-P", "--pager"):
        yield from scene.look_text(text)


def _preprocessed(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    """`rg --pre PROGRAM` runs it with every file it would search."""
    for name in (*arguments.values("--pre"), *arguments.values("--hostname-bin")):
        yield from scene.look([name, UNKNOWN])


def _xargs(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    inner = list(arguments.rest)
    if not inner:
        return
    replaced = arguments.value("-I", "--replace") or ("{}" if arguments.has("-i", "--replace") else None)
    if replaced:
        inner = [word.replace(replaced, UNKNOWN) for word in inner]
        yield from scene.look(inner)
    else:
        yield from scene.look([*inner, UNKNOWN])


def _parallel(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    inner: list[str] = []
    values: list[str] = []
    seen = False
    for word in arguments.rest:
        if word in (":::", "::::", ":::+"):
            seen = True
        elif seen:
            values.append(word)
        else:
            inner.append(word)
    if not inner:  # each value is a command line
        for value in values or ([scene.stdin] if scene.stdin and scene.stdin != UNKNOWN else []):
            yield from scene.look_text(value)
        if not values and scene.stdin == UNKNOWN:
            yield scene.found(Kind.UNKNOWN, "runs whatever another program prints")
        return
    for value in values or [UNKNOWN]:
        if any("{" in word for word in inner):
            words = [value.join(re.split(r"\{[^{}]*\}", word)) for word in inner]
        else:
            words = [*inner, value]
        yield from scene.look(words) if len(inner) > 1 or " " not in inner[0] else scene.look_text(" ".join(words))


def loader_check(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    """`/lib64/ld-linux-x86-64.so.2 PROGRAM ARGS`."""
    if arguments.rest:
        yield from scene.look(arguments.rest, scene.stdin)


def _busybox(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if len(scene.words) > 1:
        yield from scene.look(scene.words[1:], scene.stdin)


def _fd(_arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    for option in ("-x", "-X", "--exec", "--exec-batch"):
        if option in scene.words:
            inner = list(scene.words[scene.words.index(option) + 1 :])
            inner = inner[: inner.index(";")] if ";" in inner else inner
            yield from scene.look([*(word.replace("{}", UNKNOWN) for word in inner), UNKNOWN])


def runner(subcommands: str, skip: int = 0) -> RiskModel:
    """`poetry run CMD`, `npm exec -- CMD`."""

    def check(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
        words = list(scene.words)
        start = next((i for i, word in enumerate(words[1:], 1) if word in subcommands.split()), None)
        if start is None:
            return
        inner = words[start + 1 :]
        left = skip
        while inner and (left or inner[0].startswith("-")):
            if not inner[0].startswith("-"):
                left -= 1
            elif inner[0] in _RUNNER_VALUES:
                del inner[:1]
            del inner[:1]
        if inner:
            yield from scene.look(inner, scene.stdin)

    return program(check=check)


_RUNNER_VALUES = frozenset("-n -p --name --prefix --cwd --env-file --package --project --directory --with".split())
# Before the command stands a folder, a profile or a version.
SKIPS: Mapping[str, int] = {"direnv": 1, "aws-vault": 1, "rustup": 1, "nvm": 1}


RUNNERS: Mapping[str, str] = {
    "poetry": "run", "pdm": "run", "pipenv": "run", "uv": "run", "hatch": "run", "rye": "run", "conda": "run",
    "mamba": "run", "bundle": "exec", "npm": "exec x", "pnpm": "exec dlx", "yarn": "exec dlx", "direnv": "exec",
    "rbenv": "exec", "pyenv": "exec", "asdf": "exec", "mise": "exec x", "nvm": "exec", "op": "run", "doppler": "run",
    "dotenv": "run", "chezmoi": "execute-template", "aws-vault": "exec", "rustup": "run",
}  # fmt: skip

PROGRAMS: Mapping[str, RiskModel] = {
    "env genv": program(check=_env, values="-u -C -S --unset --chdir --split-string --argv0 -a", permute=False),
    "sudo": _wraps(
        "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --close-from --role --type --chdir --chroot "
        "--command-timeout --other-user"
    ),
    "doas": _wraps("-u -C -a"),
    "pkexec run0": _wraps("--user -u"),
    "timeout gtimeout": _wraps("-s -k --signal --kill-after", 1),
    "nohup setsid coproc command builtin nocache catchsegv unbuffer eatmydata dumb-init torsocks torify linux32 linux64 "
    "noglob nocorrect": _wraps(),
    "exec": _wraps("-a"),
    "time gtime": _wraps("-f -o --format --output"),
    "ltrace": _wraps("-a -A -D -e -F -l -n -o -p -s -u -w -x --output"),
    "caffeinate valgrind fakeroot rlwrap dbus-run-session xvfb-run proxychains proxychains4 gdb-args "
    "busctl-run systemd-inhibit firejail stdoutisatty winpty gosu-self": _wraps(
        "-a -f -o -n -e -s --what --who --why --mode"
    ),
    "nice": _wraps("-n --adjustment"),
    "ionice": _wraps("-c -n -p -P -u --class --classdata"),
    "chrt": _wraps("-T -P -D -p", 1),
    "taskset": _wraps("", 1),  # -c says how the mask is written, and takes no value
    "stdbuf": _wraps("-i -o -e --input --output --error"),
    "choom": _wraps("-n -p"),
    "prlimit": _wraps("-p --pid -o --output"),
    "cpulimit": _wraps("-l -p -e --limit --pid --exe"),
    "chroot": _wraps("--userspec --groups", 1),
    "gosu su-exec setuidgid chpst faketime setarch softlimit": _wraps("-u -U -n -m", 1),
    "unshare": _wraps(
        "-S -G -R -w --setuid --setgid --root --wd --map-user --map-group --map-users --map-groups --propagation "
        "--setgroups --boottime --monotonic"
    ),
    "nsenter": _wraps("-t -S -G -W --target --setuid --setgid --wdns"),
    "setpriv": _wraps(
        "--reuid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits --pdeathsig --selinux-label "
        "--apparmor-profile"
    ),
    "tini": _wraps("-p -e"),
    "bwrap": program(check=_bwrap, permute=False),
    "numactl": _wraps("-C -N -m -i -p -P --physcpubind --cpunodebind --membind --interleave --preferred"),
    "cgexec": _wraps("-g"),
    "perf": program(
        permute=False, subcommands={"stat record trace mem c2c": _wraps("-e -o -p -t -C -F -c -r -I -x -D -G -m -k -j")}
    ),
    "gdb": program(check=_gdb, values="-ex --eval-command -x -p", single_dash=True),
    "ansible": program(check=_ansible, values="-m -a -i -u -l -e -f -M -c -T --module-name --args --inventory --user"),
    "at batch": program(check=_later, values="-f -q -t"),
    "man": program(check=_pager, values="-P --pager -S -s -e -M -L -m"),
    "rg": program(check=_preprocessed, values="--pre --pre-glob --hostname-bin -e -f -g -t -T -A -B -C -m"),
    "proot": _wraps("-r -b -w -R -S -q -k -i --rootfs --bind --cwd --pwd --qemu"),
    "strace": _wraps("-e -o -p -s -u -E -P -a -O -S -b -I --trace --output --attach"),
    "systemd-run": _wraps(
        "-p -u -H -M -E --property --unit --description --slice --uid --gid --nice --working-directory --setenv "
        "--on-active "
        "--on-calendar --machine --host --service-type"
    ),
    "xargs gxargs": program(
        check=_xargs,
        values="-I -n -P -L -d -E -s -a --max-args --max-procs --delimiter --arg-file --max-chars --process-slot-var",
        permute=False,
    ),
    "parallel sem": program(
        check=_parallel,
        values="-j -a -S -I -N -n -L -d --jobs --arg-file --sshlogin --delimiter --joblog --results --timeout",
        permute=False,
    ),
    "flock": _text_option("-c --command", "-w -E --timeout --conflict-exit-code --wait", False, 1),
    "watch gwatch": _text_option("", "-n -q --interval --equexit", True),
    "hyperfine": _text_option("-p -c -s --prepare --cleanup --setup", "-w -r -m -M -L --warmup --runs", True),
    "script": _text_option("-c --command", "-a -t -o -O -I -B -T -m -E", False, 1),
    "su runuser": program(
        check=_su,
        values="-c -g -G -s -w -u --command --session-command --group --supp-group --shell --whitelist-environment "
        "--user",
    ),
    "sg": _text_option("-c", "", True, 1),
    "ssh autossh mosh": program(
        check=_ssh, values="-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -B -M", permute=False
    ),
    "nix-shell nix": _text_option("--run --command -c", "-p -I -A --packages", False, 99),
    "npx": _text_option("-c --call", "-p --package -w", False, 0),
    "entr": _wraps("-E"),
    "capsh": _text_option("-c", "", False, 0),
    "busybox toybox": program(check=_busybox),
    "fd fdfind": program(check=_fd),
    "screen": _wraps("-S -t -c -e -h -s -T -X -p"),
}
