"""Names of sessions and tags: what is valid, and how a new one is made."""

from __future__ import annotations

from wsh.wire.error import InvalidSessionName, InvalidSize, InvalidTag

_LONGEST = 64
_OF_NAMES = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_OF_TAGS = _OF_NAMES | set(":/")

_FIRST = (
    "amber ash birch blue bold brisk calm cedar clear coral dawn deep dry early ember fern fleet flint fresh frost "
    "gold green grey hazel ivory jade keen late lilac lunar maple mild mint moss north oak olive opal pale pearl "
    "pine plain quick quiet rapid red ripe river rose ruby rust sage sand silver slate soft solar south steel still "
    "stone swift teal tidal umber warm west white wide wild"
).split()
_SECOND = (
    "ant bat bear bee bird boar bull calf carp cat clam cod colt crab crane crow deer doe dove duck eagle eel elk "
    "emu ewe fawn finch fish fox frog goat goose grouse gull hare hawk hen heron horse ibis jay kite lamb lark lion "
    "loon lynx mole moose moth mouse newt otter owl ox perch pike pony quail ram rat raven rook seal shrew shrike "
    "skink slug snail snake stag stork swan tern toad trout vole wasp wolf wren yak"
).split()


def is_name(text: str) -> bool:
    """1 to 64 letters, digits, '-', '_' or '.', and no '-' in front."""
    return 0 < len(text) <= _LONGEST and _OF_NAMES.issuperset(text) and text[0] != "-"


def check_session_name(name: object) -> str:
    """A name is no path and no option: it stands in addresses, in folders and on command lines."""
    if not isinstance(name, str) or not is_name(name) or name in {".", ".."}:
        raise InvalidSessionName(name)
    return name


def check_tag(tag: object) -> str:
    if not isinstance(tag, str) or not (0 < len(tag) <= _LONGEST and _OF_TAGS.issuperset(tag)):
        raise InvalidTag(tag)
    return tag


def check_size(rows: object, cols: object) -> tuple[int, int]:
    for n in (rows, cols):
        if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 1000:
            raise InvalidSize(rows, cols)
    assert isinstance(rows, int) and isinstance(cols, int)
    return rows, cols


def make_session_name(taken: set[str]) -> str:
    """A short readable name that is not in `taken`."""
    import secrets  # a command that only checks a name does not pay for it

    for _ in range(64):
        name = f"{secrets.choice(_FIRST)}-{secrets.choice(_SECOND)}"
        if name not in taken:
            return name
    while True:
        name = f"{secrets.choice(_FIRST)}-{secrets.choice(_SECOND)}-{secrets.token_hex(3)}"
        if name not in taken:
            return name
