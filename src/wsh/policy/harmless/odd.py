"""Argument models of programs that read their arguments in a way of their own: ps, sed, xxd."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from wsh.policy.harmless.model import Judge, NotKnown, model, understand

_PS_LONG = frozenset("--forest --no-headers --headers --help --version --info --cumulative --deselect".split())
_PS_LONG_VALUES = frozenset("--pid --ppid --sort --format --user --group --cols --columns --rows --lines --tty".split())
# Letters whose value is the rest of the word, or the next word.
_PS_VALUES = {True: "CGOUgopqstu", False: "OUkopqt"}
_PS_VALUE = re.compile(r"[-+\w,.:/=%@ ]+")


def _ps(arguments: Sequence[str]) -> str | None:
    waiting = list(reversed(arguments))
    while waiting:
        word = waiting.pop()
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if name in _PS_LONG_VALUES:
                value = value if equals else waiting.pop() if waiting else ""
            elif equals or name not in _PS_LONG:
                return f"the argument {word!r} is not known to be harmless"
            else:
                continue
        elif re.fullmatch(r"\d+(?:,\d+)*", word):
            continue
        else:
            dashed = word.startswith("-")
            found = re.fullmatch(rf"-?([A-Za-z]*?)(?:([{_PS_VALUES[dashed]}])(.*))?", word)
            if found is None or not word.strip("-"):
                return f"the argument {word!r} is not known to be harmless"
            # Without a dash, e shows the environment; with one it does too, when ps takes the word for such a one.
            if "e" in (word if dashed and set("uxw") & set(word) else found[1] if not dashed else ""):
                return "it may show the environment of processes"
            if found[2] is None:
                continue
            # The old -u, t and the like may lack their value.
            value = found[3] or (waiting.pop() if waiting and not waiting[-1].startswith("-") else "")
            if not dashed and "e" in value and found[2] in "tU":
                return "it may show the environment of processes"
        if value and (value.startswith("--") or not _PS_VALUE.fullmatch(value)):
            return f"the value {value!r} is not known to be harmless"
    return None


# A bracket expression holds no delimiter: some seds look for its end first, others do not.
_SED_PART = r"(?:[^{d}\\\n\[]|\\[^\n]|\[\^?+\]?+[^\]{d}\n\\]*+\])*+"
_SED_TEXT = r"(?:[^{d}\\\n]|\\[^\n])*+"
_SED_SLASH = _SED_PART.format(d="/")
_SED_ADDRESS = rf"(?:\d{{1,9}}(?:~\d{{1,9}})?|\$|/{_SED_SLASH}/I?)"
_SED_COMMANDS = "|".join(
    [
        r"[=dDgGhHlnNpPxzF]",
        r"[qQ] ?\d{0,3}",
        *(
            rf"s{d}{_SED_PART.format(d=d)}{d}{_SED_TEXT.format(d=d)}{d}[0-9gpIi]{{0,8}}"
            for d in ("/", r"\|", "#", ",", "@", ":", "!", "%")
        ),
        r"y/[^/\\\n]*/[^/\\\n]*/",
    ]
)
_SED_STEP = re.compile(
    rf"\s*+(?:{_SED_ADDRESS}(?:,(?:{_SED_ADDRESS}|\+\d{{1,9}}|~\d{{1,9}}))?[ \t]*+!?+[ \t]*+)?(?:{_SED_COMMANDS})[ \t]*+(?:[;\n]\s*+|$)"
)
_SED = model(
    "-nsuzErb --quiet --silent --separate --null-data --regexp-extended --posix --unbuffered --debug",
    values="-el --expression --line-length",
)
_MAX_SCRIPT = 4000


def _sed(arguments: Sequence[str]) -> str | None:
    """Only scripts that print, drop and replace: `sed -n 10,20p`, `sed s/a/b/`. Others can write and execute."""
    try:
        found = understand(_SED, arguments)
    except NotKnown as problem:
        return str(problem)
    scripts = found.values("-e", "--expression")
    if not scripts:
        scripts = found.operands[:1]
    elif any(not word.startswith("-") for word in arguments[:1]):
        # With POSIXLY_CORRECT the first operand is the script, whatever option follows.
        return "write -e before the files"
    for script in scripts:
        position = 0
        while position < len(script):
            step = _SED_STEP.match(script, position) if len(script) <= _MAX_SCRIPT else None
            if step is None:
                return "only scripts that print, drop or replace text are known to be harmless"
            position = step.end()
    return None if scripts else "there is no script"


_XXD_ALONE = frozenset(
    "-a -autoskip -b -bits -C -capitalize -d -e -E -EBCDIC -i -include -p -ps -postscript -plain -u -uppercase "
    "-h -help -v -version --help --version".split()
)
_XXD_VALUES = frozenset("-c -cols -g -groupsize -l -len -o -s -seek -skip".split())
_XXD_NUMBER = re.compile(r"\+?-?(?:0x)?[0-9a-fA-F]{1,16}")


def _xxd(arguments: Sequence[str]) -> str | None:
    """Options are whole words, of which xxd looks at the first letter alone, and they end at the first operand.

    One operand: the second is a file that it writes, even if it looks like an option. No -r.
    """
    waiting = list(reversed(arguments))
    while waiting and waiting[-1].startswith("-") and waiting[-1] != "-":
        word = waiting.pop()
        if word == "--":
            break
        if word in _XXD_VALUES:
            value = waiting.pop() if waiting else ""
        elif word[:2] in ("-c", "-g", "-l", "-s") and word[2:3].isdigit():
            value = word[2:]
        elif word in _XXD_ALONE:
            continue
        else:
            return f"the option {word!r} is not known to be harmless"
        if not _XXD_NUMBER.fullmatch(value):
            return f"the value of {word!r} is no number"
    return f"the operand {waiting[0]!r} is a file that it would write" if len(waiting) > 1 else None


PROGRAMS: Mapping[str, Judge] = {"ps": _ps, "sed": _sed, "xxd": _xxd}
