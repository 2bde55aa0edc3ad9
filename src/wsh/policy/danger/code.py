"""Interpreters: scripts given on the command line or on standard input.

Shell text is read as such. Code of other languages is searched for calls that delete, fork without end or hand a
string to a shell; that is a hint for a person, never a proof of harmlessness.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice

from wsh.policy.danger.model import Check, RiskModel, Scene, program
from wsh.policy.danger.piped_script import look_at_file, look_at_stdin
from wsh.policy.parse.option import Arguments, scan
from wsh.policy.parse.word import UNKNOWN
from wsh.policy.verdict import Kind, Risk, RiskReason

_DELETES = re.compile(
    r"shutil\s*\.\s*(?:rmtree|move)|\bos\s*\.\s*(?:remove|unlink|rmdir|removedirs|truncate|kill)\b|\.unlink\s*\(|\.rmtree\s*\(|"
    r"__import__\s*\(\s*['\"]os['\"]\s*\)\s*\.\s*(?:remove|rmdir|truncate|kill)\b|Deno\s*\.\s*remove|"
    r"\brmtree\b|\bunlink\b|FileUtils\s*\.\s*rm|File\s*\.\s*(?:delete|unlink)|Dir\s*\.\s*(?:delete|rmdir)|"
    r"\.(?:rm|rmdir|unlink|truncate)(?:Sync)?\s*\(|\brmdir\s*\(|remove_dir_all|os\.RemoveAll|open\s{0,8}\([^)]{0,120}['\"]w"
)
_FORKS = re.compile(
    # Adjacent runs of blanks are bounded: each more of them is one more power of their length.
    r"fork\s+while\s+fork|while\s{0,8}\(?\s{0,8}(?:1|True|true)\s{0,8}\)?\s{0,8}[:{]?\s{0,8}(?:os\.)?fork|"
    r"loop\s*\{\s*fork|fork\s*;\s*while"
)
_CALLS = re.compile(
    r"(?:system|popen|os\.execute|exec|execSync|spawnSync|shell_exec|passthru|getoutput|check_output|check_call|run|call|Popen|qx|backtick)"
    r"\s{0,4}[({\[ ]\s{0,4}(\[?)\s{0,4}(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'(?:\s*,\s*'(?:[^'\\]|\\.)*')*)"
)
_AWK_PIPES = re.compile(r"\|\s*\"((?:[^\"\\]|\\.)*)\"|\"((?:[^\"\\]|\\.)*)\"\s*\|\s*getline")
_AWK_WRITES = re.compile(r">\s*\"((?:[^\"\\]|\\.)*)\"")
_MAX_CALLS = 64
_BACKTICKS = re.compile(r"`([^`]*)`")


def look_at_code(text: str, scene: Scene) -> Iterable[RiskReason]:
    if _FORKS.search(text):
        yield scene.found(Kind.PROCESS, "starts itself without end", Risk.IRRECOVERABLE)
    if _DELETES.search(text):
        yield scene.found(Kind.DELETE, "calls a function that deletes or overwrites")
    calls = list(islice(_CALLS.finditer(text), _MAX_CALLS + 1))
    backticks = list(islice(_BACKTICKS.finditer(text), _MAX_CALLS + 1))
    if len(calls) + len(backticks) > _MAX_CALLS:
        yield scene.found(Kind.UNKNOWN, "starts more commands than can be looked at")
        return
    for match in calls:
        quoted = match[2]
        if match[1] or "," in quoted and quoted.count("'") > 2:
            words = [part[1:-1] for part in re.findall(r"\"[^\"]*\"|'[^']*'", text[match.start(2) :].split("]")[0])]
            yield from scene.look(words)
        else:
            yield from scene.look_text(quoted[1:-1].replace('\\"', '"').replace("\\'", "'"))
    for match in backticks:
        yield from scene.look_text(match[1])


def _shell(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.operands and arguments.operands[0].startswith("+"):  # `bash +x -c TEXT`: an option too
        arguments = scan([re.sub(r"^\+", "-", word) for word in scene.words[1:]], _SHELL.arity)
    if arguments.operands[:1] == ["-"]:  # `sh -` is `sh --`
        arguments = replace(arguments, operands=arguments.operands[1:])
    given = arguments.find("-c", "--command")
    if given is not None:
        # `bash -lc TEXT` and `bash -c -l TEXT`: the text is the first operand.
        text = given[1] if given[1] is not None else (arguments.operands[0] if arguments.operands else "")
        yield from _text(text, scene)
    elif not arguments.operands or arguments.has("-s"):
        yield from look_at_stdin(scene, scene.look_text)
    else:
        yield from look_at_file(arguments, scene)


def _text(text: str, scene: Scene) -> Iterable[RiskReason]:
    if text == UNKNOWN:
        yield scene.found(Kind.UNKNOWN, "runs a script that is not known before")
    else:
        yield from scene.look_text(text)


def _eval(_arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    text = " ".join(scene.words[1:])
    yield from _text(text, scene)


def _trap(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if len(arguments.operands) > 1:
        yield from _text(arguments.operands[0], scene)


def _alias(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    for operand in arguments.operands:
        _, equals, value = operand.partition("=")
        if equals:
            yield from scene.look_text(f"{value} {UNKNOWN}" if UNKNOWN in value else value + " argument")


def _inline(options: str) -> Check:
    names = tuple(options.split())

    def check(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
        for text in arguments.values(*names):
            yield from look_at_code(text, scene)
        reads = not arguments.operands or arguments.operands[0] == "-"
        if reads and not (scene.stdin == UNKNOWN and arguments.options):
            yield from look_at_stdin(scene, lambda code: look_at_code(code, scene))
        if arguments.has("-i") and "-e" in names:  # perl -i, ruby -i
            yield scene.found(Kind.OVERWRITE, "edits files in place")

    return check


def _python(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    module = arguments.value("-m")
    if module is not None:
        yield from scene.look([module, *arguments.operands])
        return
    if arguments.operands and arguments.operands[0].rpartition("/")[2] in ("manage.py",):
        yield from scene.look(["manage.py", *arguments.operands[1:]])
        return
    yield from _inline("-c")(arguments, scene)


def _php(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.operands[:1] == ["artisan"]:
        yield from scene.look(arguments.operands)
    yield from _inline("-r")(arguments, scene)


def _deno(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.operands[:1] == ["eval"]:
        for text in arguments.operands[1:]:
            yield from look_at_code(text, scene)


def _awk(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.value("-i", "--include") == "inplace":
        yield scene.found(Kind.OVERWRITE, "edits files in place")
    for text in [*arguments.values("-e", "--source"), *arguments.operands[:1]]:
        yield from look_at_code(text, scene)
        for match in _AWK_PIPES.finditer(text):
            yield from scene.look_text(match[1] or match[2] or "")
        if any(not target.startswith("/dev/std") for target in _AWK_WRITES.findall(text)):
            yield scene.found(Kind.OVERWRITE, "overwrites a file")


def _editor(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    texts = [*arguments.values("-c", "--cmd"), *(o[1:] for o in arguments.operands if o.startswith("+"))]
    for text in texts:
        if text.lstrip(": ").startswith("!"):
            yield from scene.look_text(text.lstrip(": !"))
        elif re.match(r":*\s*(?:sil\w*\s+)?!", text) or "system(" in text:
            yield from look_at_code(text, scene)


_SHELL = program(check=_shell, values="-o -O +O --rcfile --init-file", permute=False)
_INTERPRETED = "-e -E -I -M -m -r -C -x -n0"

PROGRAMS: Mapping[str, RiskModel] = {
    "sh bash dash zsh ksh ksh93 mksh ash rbash yash posh fish csh tcsh nu elvish xonsh pwsh": _SHELL,
    "eval": program(check=_eval),
    ". source": program(check=look_at_file, permute=False),
    "trap": program(check=_trap, permute=False),
    "alias": program(check=_alias),
    "python python2 python3 pypy pypy3 ipython": program(check=_python, values="-c -m -W -X", permute=False),
    "perl": program(check=_inline("-e -E"), values="-e -E -I -M -m -C -x", permute=False),
    "ruby": program(check=_inline("-e"), values="-e -I -r -C -E", permute=False),
    "deno": program(check=_deno),
    "node nodejs bun.js tsx ts-node": program(
        check=_inline("-e -p --eval --print"), values="-e -p -r --eval --print --require --import", permute=False
    ),
    "php": program(check=_php, values="-r -d -c -B -R -E -f", permute=False),
    "lua luajit": program(check=_inline("-e"), values="-e -l", permute=False),
    "osascript Rscript julia ghc-e swift groovy scala": program(
        check=_inline("-e --eval"), values="-e --eval", permute=False
    ),
    "tclsh expect": program(check=_inline("-c"), values="-c -f", permute=False),
    "awk gawk mawk nawk": program(
        check=_awk, values="-f -v -F -e -i -l --file --assign --field-separator --source --include", permute=False
    ),
    "vim vi nvim ex view emacs ed": program(check=_editor, values="-c --cmd -u -S -s -i"),
}
