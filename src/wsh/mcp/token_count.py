"""Tokens counted cheaply: about as many as a common tokenizer (o200k_base) makes of a text, without its tables.

Text is split into pieces exactly as that tokenizer splits it before it looks anything up; each piece is one token at least. What a piece
costs beyond that is estimated from its letters: how long a word is and what it is glued to, how many different marks follow each other,
which script it is in. Within a tenth for what terminals print; other languages may be a little further off. Standard library alone.
"""

from __future__ import annotations

import re

_UPPER = "A-ZÀ-ÖØ-ÞΑ-ΩА-ЯЁІЇЄ"
_LOWER = "a-zß-öø-ÿĀ-ɏά-ωа-ґ\u1e00-\u1eff"
_COMBINING = "\u0300-\u036f\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0e31-\u0e4e"
# A word takes one blank or mark in front of it along; digits go by threes; marks take the end of their line along.
_PIECE = re.compile(
    rf"(?P<word>(?:[^\w\r\n]|_)?(?:[{_UPPER}]*[{_LOWER}]+|[{_UPPER}]+)(?:'(?:s|t|re|ve|m|ll|d)\b)?)"
    rf"|(?P<letters>(?:[^\w\r\n]|_)?(?:[^\W\d_A-Za-z][{_COMBINING}]*)+)"
    r"|(?P<number>\d{1,3})|(?P<marks> ?(?:[^\w\s]|_)+[\r\n/]*)|(?P<blank>\s*[\r\n]+|\s+(?!\S)|\s+)"
)
_DENSE = re.compile(r"[A-Za-z0-9+/=]{16,}")
_TURN = re.compile(r"(?<=[a-z])(?=[A-Z0-9+])|(?<=[A-Z])(?=[a-z0-9+])|(?<=[0-9])(?=[A-Za-z+])")
_HEX = re.compile(r"[0-9a-f]+")
_VOWEL = re.compile(r"[aeiouy]", re.IGNORECASE)
_REPEATED = re.compile(r"(.)\1{2,}", re.DOTALL)
# Of these, every form is one token.
_COMMON = frozenset(
    (
        "accent action address allow answer append approval argument array assert assets async atomic attribute author "
        "await backup before boolean bound bright browser buffer build button bytes cache callback check child children "
        "class click client close color column command commands comment commit common complete completion config "
        "connection const contains content context contract copyright count create created current cursor daemon debug "
        "default define defined delete dependencies deploy description desktop details dialog dictionary docker document "
        "duration effect element email empty encode encoding engine entry equal error escape event example exception "
        "expect expected export exports express extern failed false family field filename files filesystem filter folder "
        "fonts force format found frame function functions future generator github globals green group handler header "
        "height hello hidden https identifier image implemented import include includes inclusive index inline input "
        "insert inspect install integer interface invalid invoice issue journal keywords label length level license limit "
        "lines linux loader local locale login master match maximum method minimum model modified module modules names "
        "number object operation option options origin other output overlay package packages pages palette param parent "
        "parse parser pattern person plain plugin policy prefix print process projects properties property props proto "
        "proxy python queue quiet react reader received regex register release reload remote remove replace repository "
        "request require required reset resolve response restart result retry return round running schema screen script "
        "scripts search seconds section security select server service session setting share shell signal signature slave "
        "slice socket source space specific split stack start state static status store stream strict string struct style "
        "success suffix system table target terminal tests theme thread timeout timer title token tools total trace types "
        "undefined unknown update usage users value values variable verbose version visual waiting warning warnings which "
        "width window worker works workspace world wrapper write writer "
        "controller exceptions generated localhost"
    ).split()
)


def count_tokens(text: str) -> int:
    """About as many tokens as a model reads in it."""
    cost = 0.0

    def take(run: re.Match[str]) -> str:
        """Random letters and digits, such as base64: nothing in them is a word."""
        nonlocal cost
        found = run.group()
        if len(_TURN.findall(found)) * 3 < len(found):
            return found
        cost += len(found) * (0.55 if _HEX.fullmatch(found) else 0.68)
        return "\0"

    for piece in _PIECE.finditer(_DENSE.sub(take, text)):
        kind, found = piece.lastgroup, piece.group()
        cost += 1.0
        if kind == "word":
            cost += _price_word(found)
        elif kind == "letters":
            cost += _price_letters(found)
        elif kind == "marks":
            cost += _price_marks(found.strip(" \r\n"))
    return round(cost)


def _price_word(found: str) -> float:
    """What a word costs beyond its first token: `found` begins with what it is glued to."""
    before = "" if found[0].isalpha() else found[0]
    word = found.removeprefix(before)
    length = len(word)
    if not word.isascii():
        return _price_foreign(word) * max(0, length - 2)
    marked = before not in ("", " ")
    if word.lower() in _COMMON and (word.islower() or word.istitle()):
        return 0.3 if marked else 0.0
    more = 0.0
    if length > 1 and word.isupper():
        more = (0.04 if before == " " else 0.22) * (length - 1)
    elif before == " ":
        more = 0.06 * max(0, length - 4) + 0.06 * max(0, length - 9)
    elif not marked:
        more = 0.13 * max(0, length - 4) + 0.3 * max(0, length - 9)
    elif length > 1:
        more = 0.28 + 0.1 * max(0, length - 5)
    if length > 2 and not _VOWEL.search(word):
        more += 0.5 * (length - 2)
    return more


def _price_foreign(word: str) -> float:
    """For each letter of a word with others than English ones."""
    if "\u0370" <= word[-1] <= "\u03ff":
        return 0.39
    if "\u0400" <= word[-1] <= "\u04ff":
        return 0.15
    return 0.48 if any("\u0100" <= letter <= "\u024f" or letter >= "\u1e00" for letter in word) else 0.32


def _price_letters(found: str) -> float:
    """Scripts without capitals, most of them without blanks between words."""
    last = found[-1]
    if "\u3040" <= last <= "\u30ff":
        each = 0.66
    elif "\u3400" <= last <= "\u9fff":
        each = 0.67
    elif "\uac00" <= last <= "\ud7a3":
        each = 0.36
    else:
        each = 0.2
    return each * (len(found) - 1)


def _price_marks(marks: str) -> float:
    if not marks.isascii():
        return _price_symbols(marks)
    different = len(_REPEATED.sub(r"\1", marks))
    more = 0.57 + 0.55 * (different - 4) if different > 3 else 0.0
    if len(marks) > 20:
        more += (len(marks) - 4) / 30
    return more + 1.2 if "\x1b" in marks else more


def _price_symbols(marks: str) -> float:
    cost, before = -1.0, ""
    for mark in marks:
        if mark == before:
            cost += 0.31
        elif mark >= "\U0001f000":
            cost += 2.3
        elif "\u2600" <= mark <= "\u27bf":
            cost += 1.7
        elif mark.isascii() or mark in "\ufe0f\u200d":
            cost += 0.8
        else:
            cost += 1.07
        before = mark
    return max(0.0, cost)
