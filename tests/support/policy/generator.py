"""Command lines for the policy to be talked around with: destructive commands in disguise, and wild mixtures.

Hypothesis strategies. A `Disguised` line surely runs its command when a shell reads it; how it is quoted, wrapped,
joined and spelled varies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

# argv with choices: a tuple stands for spellings of the same thing.
DESTRUCTIVE: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("rm",), ("x", "build", "./a b", "-x")),
    (("rm",), ("-rf", "-fr", "-r", "-Rf", "-vrf", "--recursive", "--recurs", "-r --force"), ("build", "a/b")),
    (("rmdir",), ("x",)),
    (("unlink",), ("x",)),
    (("git",), ("reset",), ("--hard", "--har", "-q --hard", "--hard HEAD~1")),
    (("git",), ("push",), ("--force", "-f", "--forc", "-uf", "--force-with-lease"), ("origin",)),
    (("git",), ("push",), ("origin",), ("+main", ":old")),
    (("git",), ("clean",), ("-fdx", "-f", "-d -f", "--force", "-xdf")),
    (("git",), ("branch",), ("-D", "--delete --force", "-d -f"), ("x",)),
    (("git",), ("checkout",), ("-f", "--force", "-- ."), ("main",)),
    (("git",), ("stash",), ("drop", "clear")),
    (("find",), (".", "a b"), ("-delete", "-name x -delete", "-type f -delete")),
    (("find",), (".",), ("-exec",), ("rm", "/bin/rm"), ("{}",), (";", "+")),
    (("truncate",), ("-s0", "-s 0", "--size=0", "--size 0"), ("f",)),
    (("shred",), ("f", "-u f")),
    (("dd",), ("if=a",), ("of=b",)),
    (("chmod",), ("-R", "--recursive", "-vR", "--recur"), ("777",), (".",)),
    (("chown",), ("-R", "--recursive"), ("x",), (".",)),
    (("kill",), ("-9", "-KILL", "-s KILL"), ("5",)),
    (("pkill", "killall"), ("x",)),
    (("docker",), ("rm", "rmi", "volume rm", "system prune"), ("x",)),
    (("kubectl",), ("delete", "-n prod delete", "--namespace=prod delete"), ("pod",), ("x",)),
    (("terraform",), ("destroy", "-chdir=x destroy", "apply -destroy")),
    (("npm",), ("publish", "unpublish x", "uninstall x")),
    (("pip",), ("uninstall",), ("-y", "--yes"), ("x",)),
    (("apt-get",), ("remove", "-y remove", "purge", "autoremove -y"), ("x",)),
    (("systemctl",), ("stop", "disable", "--now disable"), ("x",)),
    (("mysql",), ("-e",), ("drop database x", "DELETE FROM t", "truncate table t")),
    (("psql",), ("-c", "--command", "--comm"), ("drop table x", "delete from t where true")),
    (("crontab",), ("-r",)),
    (("tar",), ("--remove-files", "--remove-f"), ("-cf",), ("a",), ("b",)),
    (("rsync",), ("-a",), ("--delete", "--del", "--delete-after", "--remove-source-files"), ("a",), ("b",)),
    (("sed",), ("-i", "-i.bak", "--in-place", "--in-pl", "-ni"), ("s/a/b/",), ("f",)),
    (("mv",), ("x",), ("/dev/null",)),
    (("tee",), ("f",)),
    (("shutdown",), ("now", "-h now")),
    (("gh",), ("repo",), ("delete",), ("x",)),
)  # fmt: skip

_SAFE_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=+@%")


@dataclass(frozen=True)
class Disguised:
    text: str
    argv: tuple[str, ...]


@st.composite
def destructive_argv(draw: st.DrawFn) -> tuple[str, ...]:
    spelled = draw(st.sampled_from(DESTRUCTIVE))
    words: list[str] = []
    for position, choices in enumerate(spelled):
        choice = draw(st.sampled_from(choices))
        # A choice with blanks is several words, except where it is text for a client or a file name.
        keep = words[-1:] and words[-1] in ("-e", "-c", "--command", "--comm") or choice in ("./a b", "a b")
        words += [choice] if keep or position == 0 else choice.split(" ")
    if words[0] == "rm" and words[1:] == ["-x"]:
        words = ["rm", "--", "-x"]
    return tuple(words)


@st.composite
def quoted(draw: st.DrawFn, word: str) -> str:
    """`word` in one of the ways a shell reads as exactly it."""
    bare = bool(word) and all(char in _SAFE_BARE for char in word) and not word.startswith("=")
    style = draw(st.sampled_from(("bare", "single", "double", "mixed", "backslash", "ansi", "empty")))
    if style in ("bare", "empty", "backslash") and not bare:
        style = "single"
    if style == "bare":
        return word
    if style == "empty":
        at = draw(st.integers(0, len(word)))
        return word[:at] + draw(st.sampled_from(("''", '""'))) + word[at:]
    if style == "backslash":
        at = draw(st.integers(0, len(word) - 1))
        return word[:at] + "\\" + word[at:]
    if style == "double":
        escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
        return f'"{escaped}"'
    if style == "ansi":
        return "$'" + "".join(f"\\x{ord(char):02x}" if ord(char) < 128 else char for char in word) + "'"
    if style == "mixed" and bare and len(word) > 1:
        at = draw(st.integers(1, len(word) - 1))
        return f"'{word[:at]}'" + word[at:]
    return "'" + word.replace("'", "'\\''") + "'"


@st.composite
def spelled(draw: st.DrawFn, argv: Sequence[str]) -> str:
    blank = draw(st.sampled_from((" ", "  ", "\t")))
    return blank.join([draw(quoted(word)) for word in argv])


LAUNCHES: tuple[tuple[str, ...], ...] = (
    ("env",), ("env", "A=1"), ("env", "-i", "PATH=/bin"), ("env", "-u", "X"), ("timeout", "5"), ("timeout", "-s", "KILL", "5"),
    ("timeout", "--signal=KILL", "5"), ("nice",), ("nice", "-n", "5"), ("nice", "-n5"), ("nohup",), ("setsid",),
    ("command",), ("exec",), ("builtin", "command"), ("env", "timeout", "9", "nice"),
)  # fmt: skip
SHELLS: tuple[tuple[str, ...], ...] = (
    ("sh", "-c"), ("bash", "-c"), ("bash", "-ec"), ("bash", "-c", "--"), ("dash", "-c"), ("env", "sh", "-c"), ("eval",),
)  # fmt: skip


@st.composite
def disguised(draw: st.DrawFn) -> Disguised:
    argv = draw(destructive_argv())
    words: tuple[str, ...] = argv
    program = draw(st.sampled_from(("", "", "", "/bin/", "/usr/bin/")))
    words = (program + words[0], *words[1:])
    for _ in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(("launch", "shell")))
        if kind == "launch":
            launch = draw(st.sampled_from(LAUNCHES))
            if launch[0] in ("command", "exec", "builtin") and words[0] in ("eval", "command", "exec", "builtin"):
                continue
            if launch[0] not in ("command", "exec", "builtin") and words[0] in ("eval", "command", "exec", "builtin"):
                continue
            words = (*launch, *words)
        else:
            shell = draw(st.sampled_from(SHELLS))
            inner = draw(spelled(words))
            # dash knows neither, however the word is quoted.
            if ("$'" in inner or "builtin" in words) and shell[0] not in ("bash", "eval"):
                continue
            words = (*shell, inner)
    text = draw(spelled(words))
    around = draw(
        st.sampled_from(
            (
                "{}", "{}", "{}", "ls; {}", "ls && {}", "false || ls; {}", "ls | {}", "{} | cat", "({})", "{{ {}; }}",
                "ls $({})", "ls `{}`", "echo \"$({})\"", "ls\n{}", "if ls; then {}; fi", "while {}; do break; done",
                "for i in 1; do {}; done", "f() {{ {}; }}; f", "A=1; {}", "ls & {}", "{} &", "! {}", "cat <({})", "{} > out",
                "{} 2>&1", "case x in x) {};; esac", "ls;{};ls", "ls&&{}||ls", "time {}", "[[ a ]] && {}", "A=$({})",
            )
        )
    )  # fmt: skip
    if "`" in around and ("\\" in text or "`" in text or "'" in text):
        around = "ls; {}"  # backquotes read backslashes their own way
    return Disguised(around.format(text), argv)


FRAGMENTS = (
    "ls", "cat", "echo", "rm", "x", "-la", "--color=never", "a.txt", "src", "'a b'", '"c d"', "\\ ", "\\;", "'", '"', ";", "&&", "||",
    "|", "&", "\n", "\t", " ", " ", " ", " ", "(", ")", "{", "}", "$x", "$(rm x)", "`rm x`", ">f", "<f", "2>&1", "*", "?", "[a]", "~",
    "~/x", "HEAD~1", "a=b", "A=1", "#", "a#b", "!", "!x", "=", "==", "{a,b}", "{1..3}", "$'x'", '$"x"', "\\", "\\\n", "if", "then", "fi",
    "time", "[[", "]]", ";;", "|&", "&>", ">|", "<<EOF", "EOF", "<<<x", "''", '""', "é", "日本", "\u00a0", "\u202e", "\r", "-", "--", "^",
    "%1", "@", "+", ",", ".", "/", ":", "1", "10", "0x1", "'\\'", '"\\"', '"$"', '"a$ b"', "a'b'\"c\"", "$", "$$", "\\$x", "'$x'", '"!"', "a!b",
    "exec", "eval", "command", "git", "status", "find", ".", "-delete", "-exec", "{}", "\\(", "\\)", "sort", "-o", "f",
)  # fmt: skip


def mixtures() -> st.SearchStrategy[str]:
    """Anything at all, made of pieces that shells care about."""
    return st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=12).map("".join)


def spaced_mixtures() -> st.SearchStrategy[str]:
    """The same with blanks between, so that more of it is understood."""
    return st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=8).map(" ".join)
