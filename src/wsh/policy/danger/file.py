"""Files: removing, overwriting, moving, changing owner and mode."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wsh.policy.danger.model import RiskModel, Scene, always, danger, program
from wsh.policy.parse.option import Arguments
from wsh.policy.parse.word import GLOB, UNKNOWN
from wsh.policy.risk.target import Target, classify
from wsh.policy.verdict import Kind, Risk, RiskReason

_WIPES = {Target.ROOT: "the root folder", Target.SYSTEM: "a system folder", Target.HOME: "a home folder"}
_HELP = ("--help", "--version")


def _removes(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.has(*_HELP) or not arguments.operands:
        return
    recursive = arguments.has("-r", "-R", "--recursive")
    for operand in arguments.operands:
        target = classify(operand, scene.cwd, scene.home)
        if target in _WIPES and (recursive or GLOB in operand):
            yield scene.found(Kind.DELETE, f"removes {_WIPES[target]}", Risk.IRRECOVERABLE)
            return
    yield scene.found(Kind.DELETE, "removes files")


def _changes_mode(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    recursive = arguments.has("-R", "--recursive")
    operands = arguments.operands if arguments.has("--reference") else arguments.operands[1:]
    for operand in operands:
        target = classify(operand, scene.cwd, scene.home)
        if recursive and target in (Target.ROOT, Target.SYSTEM):
            yield scene.found(Kind.PERMISSION, f"changes owner or mode of all of {_WIPES[target]}", Risk.IRRECOVERABLE)
            return
        if target in (Target.ROOT, Target.SYSTEM, Target.DEVICE) and not arguments.has(*_HELP):
            yield scene.found(Kind.PERMISSION, "changes owner or mode of a part of the system")
            return
    if recursive and not arguments.has(*_HELP):
        yield scene.found(Kind.PERMISSION, "changes owner or mode of a whole tree")


def writes(word: str, scene: Scene) -> Iterable[RiskReason]:
    """Findings about replacing the content of `word`."""
    target = classify(word, scene.cwd, scene.home)
    if target is Target.SINK:
        return
    if target is Target.DEVICE:
        yield scene.found(Kind.DEVICE, "writes over a device", Risk.IRRECOVERABLE)
    else:
        yield scene.found(Kind.OVERWRITE, "overwrites a file")


def _moves(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    destination = arguments.value("-t", "--target-directory")
    sources = arguments.operands if destination is not None else arguments.operands[:-1]
    if destination is None:
        destination = arguments.operands[-1] if len(arguments.operands) > 1 else ""
    for source in sources:
        target = classify(source, scene.cwd, scene.home)
        if target in _WIPES:
            yield scene.found(Kind.DELETE, f"moves {_WIPES[target]} away", Risk.IRRECOVERABLE)
    target = classify(destination, scene.cwd, scene.home) if destination else Target.ORDINARY
    if target is Target.DEVICE and not destination.rstrip("/").endswith("/dev/shm"):
        yield scene.found(Kind.DEVICE, "writes over a device", Risk.IRRECOVERABLE)
    elif target is Target.SINK:
        yield scene.found(Kind.DELETE, "moves files where they are lost")


def _copies(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    destination = arguments.value("-t", "--target-directory")
    sources = arguments.operands if destination is not None else arguments.operands[:-1]
    if destination is None:
        destination = arguments.operands[-1] if len(arguments.operands) > 1 else ""
    if destination and classify(destination, scene.cwd, scene.home) is Target.DEVICE:
        yield scene.found(Kind.DEVICE, "writes over a device", Risk.IRRECOVERABLE)
    elif any(source in ("/dev/null", "/dev/zero") for source in sources):
        yield scene.found(Kind.OVERWRITE, "replaces a file with nothing")


def _dd(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    for operand in arguments.operands:
        if operand.startswith("of="):
            yield from writes(operand[3:], scene)


def _tees(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    appends = arguments.has("-a", "--append")
    for operand in arguments.operands:
        if classify(operand, scene.cwd, scene.home) is Target.DEVICE or not appends:
            yield from writes(operand, scene)


def _shreds(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    for operand in arguments.operands:
        if classify(operand, scene.cwd, scene.home) is Target.DEVICE:
            yield scene.found(Kind.DEVICE, "erases a device", Risk.IRRECOVERABLE)
            return
    if arguments.operands and not arguments.has(*_HELP):
        yield scene.found(Kind.DELETE, "erases files beyond recovery")


def _output_option(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    target = arguments.value("-o", "--output")
    if target is not None:
        yield from writes(target, scene)


# Blanks only where a newline could also begin the match: otherwise a text of newlines takes quadratic time.
_SED_EXECUTES = re.compile(r"(?:^|[;{}\n0-9$/!])[^\S\n]*e\s+([^;}\n]+)|/[gIpM0-9]*e[gIpM0-9]*(?:$|[;}\n ])")
_SED_WRITES = re.compile(r"(?:^|[;{}\n0-9$/!])[^\S\n]*[wW]\s+(\S+)|/[gIpM0-9]*w\s+(\S+)")


def _sed(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.has("-i", "--in-place"):
        yield scene.found(Kind.OVERWRITE, "edits files in place")
    scripts = arguments.values("-e", "--expression") or arguments.operands[:1]
    for script in scripts:
        for target in dict.fromkeys(match[1] or match[2] for match in _SED_WRITES.finditer(script)):
            yield from writes(target, scene)
        for match in _SED_EXECUTES.finditer(script):
            if match[1]:
                yield from scene.look_text(match[1])
            else:
                yield scene.found(Kind.UNKNOWN, "runs what a replacement yields")


def _rsync(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.has("-n", "--dry-run"):
        return
    deletes = [name for name, _ in arguments.options if name.startswith(("--del", "--remove-s"))]
    if not deletes:
        return
    destination = arguments.operands[-1] if arguments.operands else ""
    target = classify(destination, scene.cwd, scene.home) if ":" not in destination else Target.ORDINARY
    wipes = target in _WIPES and any(name.startswith("--del") for name in deletes)
    risk = Risk.IRRECOVERABLE if wipes else Risk.DESTRUCTIVE
    yield scene.found(Kind.DELETE, "removes files while synchronising", risk)


def _rclone(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if not arguments.has("-n", "--dry-run"):
        yield scene.found(Kind.DELETE, "removes files in storage")


_NARROWS = frozenset(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -size -mtime -atime -ctime -mmin -amin -cmin "
    "-newer -anewer -cnewer -user -uid -group -gid -perm -inum -samefile -lname -ilname -empty -links -fstype".split()
)
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_WRITES = frozenset({"-fprint", "-fprint0", "-fprintf", "-fls"})


def find_starts(words: tuple[str, ...]) -> list[str]:
    starts: list[str] = []
    for word in words[1:]:
        if word in ("-H", "-L", "-P") or re.fullmatch(r"-O\d", word):
            continue
        if word.startswith("-") or word in ("(", "!", ")", ","):
            break
        starts.append(word)
    return starts or ["."]


def _find(_arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    words = scene.words
    starts = find_starts(words)
    narrow = any(word in _NARROWS or word.startswith("-newer") for word in words)
    wiped = [start for start in starts if classify(start, scene.cwd, scene.home) in _WIPES]
    position = 1
    while position < len(words):
        word = words[position]
        position += 1
        if word == "-delete":
            risk = Risk.IRRECOVERABLE if wiped and not narrow else Risk.DESTRUCTIVE
            yield scene.found(Kind.DELETE, "removes what it finds", risk)
        elif word in _FIND_WRITES and position < len(words):
            yield from writes(words[position], scene)
        elif word in _FIND_RUNS:
            inner: list[str] = []
            while position < len(words) and words[position] != ";":
                ends = words[position] == "+" and bool(inner) and inner[-1].endswith("{}")
                if ends:
                    break
                inner.append(words[position])
                position += 1
            found = f"{wiped[0]}/{GLOB}" if wiped and not narrow else UNKNOWN
            yield from scene.look([part.replace("{}", found) for part in inner])


def _tar(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    # The first word may be a cluster without a dash: `tar czf x`.
    if arguments.has("--remove-files"):
        yield scene.found(Kind.DELETE, "removes files once they are packed")
    for value in arguments.values("--to-command", "-I", "--use-compress-program", "-F", "--info-script"):
        yield from scene.look_text(value)
    for value in arguments.values("--checkpoint-action"):
        if value.startswith("exec="):
            yield from scene.look_text(value[5:])
    if arguments.has("--delete"):
        yield scene.found(Kind.DELETE, "removes members of an archive")


def _chattr(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.has("-R"):
        yield scene.found(Kind.PERMISSION, "changes attributes of a whole tree")


PROGRAMS: Mapping[str, RiskModel] = {
    "rm": program(check=_removes),
    "rmdir": always(Kind.DELETE, "removes folders", at_least=1),
    "unlink": always(Kind.DELETE, "removes a file", at_least=1),
    "srm wipe trash-empty rimraf": always(Kind.DELETE, "erases files"),
    "shred": program(check=_shreds, values="-n -s --iterations --size --random-source"),
    "truncate": always(Kind.OVERWRITE, "cuts files off", values="-s -r --size --reference", at_least=1),
    "fallocate": program(
        danger(Kind.OVERWRITE, "punches holes into a file", "-p -c -z --punch-hole --collapse-range --zero-range"),
        values="-o -l --offset --length",
    ),
    "chmod chown chgrp": program(check=_changes_mode, values="--reference --from"),
    "setfacl": program(
        danger(Kind.PERMISSION, "changes the access of a whole tree", "-R --recursive"), values="-m -x -M"
    ),
    "chattr": program(check=_chattr, values="-v -p"),
    "mv": program(check=_moves, values="-t -S --target-directory --suffix"),
    "cp install": program(check=_copies, values="-t -S -m -o -g --target-directory --suffix --mode --owner --group"),
    "dd dcfldd dc3dd": program(check=_dd),
    "tee sponge": program(check=_tees),
    "sort": program(
        check=_output_option,
        values="-o -k -t -S -T --output --key --field-separator --buffer-size --temporary-directory",
    ),
    "sed gsed": program(check=_sed, values="-e -f -l --expression --file --line-length"),
    "yq": program(
        danger(Kind.OVERWRITE, "edits files in place", "-i --inplace --in-place"), values="-o -p --output-format"
    ),
    "rsync": program(
        check=_rsync,
        values="-e -f -B -M -T --rsh --exclude --include --filter --files-from --exclude-from --include-from "
        "--temp-dir "
        "--compare-dest --copy-dest --link-dest --backup-dir --suffix --log-file --bwlimit --timeout --port "
        "--rsync-path",
    ),
    "rclone": program(
        values="--config --log-file --filter --include --exclude --transfers --bwlimit",
        subcommands={
            "delete deletefile purge rmdir rmdirs cleanup sync bisync move moveto": program(check=_rclone),
        },
    ),
    "find gfind": program(check=_find),
    "tar gtar bsdtar": program(
        check=_tar,
        values="-f -C -T -X -I -F --file --directory --files-from --exclude --exclude-from --to-command "
        "--use-compress-program --info-script --checkpoint-action --transform --owner --group --mode",
    ),
    "zip": program(
        danger(Kind.DELETE, "removes files once they are packed", "-m --move"),
        danger(Kind.DELETE, "removes members of an archive", "-d --delete"),
        values="-x -i -b -t -tt -n -P -TT",
    ),
    "unzip": program(danger(Kind.OVERWRITE, "overwrites files without asking", "-o"), values="-d -x -P"),
    "7z 7za 7zr": program(subcommands={"d": always(Kind.DELETE, "removes members of an archive")}),
    "ar": program(danger(Kind.DELETE, "removes members of an archive", operand=r"^-?d[a-z]*$")),
    "git-filter-repo bfg": always(Kind.REPOSITORY, "rewrites history"),
    "ln": program(
        danger(Kind.OVERWRITE, "replaces an existing file", "-f --force"), values="-t -S --target-directory --suffix"
    ),
    "xxd": program(danger(Kind.OVERWRITE, "patches a file", "-r --revert"), values="-c -g -l -s -o"),
    "uniq": program(danger(Kind.OVERWRITE, "overwrites a file", at_least=2), values="-f -s -w"),
    "csplit split": program(),
    "gzip bzip2 xz zstd": program(
        danger(Kind.OVERWRITE, "overwrites files without asking", "-f --force", unless="-c --stdout -t -l")
    ),
    "logrotate": program(danger(Kind.DELETE, "rotates logs away", "-f --force"), values="-s -l"),
    "tree": program(check=_output_option, values="-o -L -P -I -H -T --charset --filelimit --sort"),
}
