"""Read a shell script the way `assess` needs it: every command that could run, with its words as far as known.

Built on tree-sitter-bash. This reader is generous where `lexer` is strict: it looks into substitutions, loops,
functions and conditions, follows literal assignments and `cd`, and marks what it cannot know (`word`). It executes
nothing and decides nothing. `read_literal` is the strict view of the same tree, for comparison with the lexer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from wsh.policy.parse.fold import Folded, fold
from wsh.policy.parse.lexer import LiteralCommand
from wsh.policy.parse.word import GLOB, HOME, SPLIT, UNKNOWN, decode_ansi_c, expand, mark_unquoted

_LANGUAGE = Language(tree_sitter_bash.language())

# On text that it does not accept, the grammar takes time quadratic in these; the limit keeps the worst case near 20 ms.
_STRUCTURE = re.compile(r"[|<>(){}\[\];&`$=!\n]")
_MAX_STRUCTURE = 500
_LINEAR = re.compile(r"[ \t]+|['\"\\#*?~]")
_MAX_LINEAR = 6_000
_MAX_HEREDOCS = 24
# The grammar tries to make sense of each one again and again.
_MAX_OPEN = 64
_MAX_NODES = 6_000
_MAX_COMMANDS = 1_000
_MIN_VALUES = 8
"""Values of a loop that are gone through however many commands there are."""
_MAX_DEPTH = 200
# A node may be gone through once for each value of the loops around it, and a value may hold others twice.
_MAX_STEPS = 30_000
_MAX_EXPANDED = 256 * 1024


class TooComplicated(Exception):
    """More syntax than can be understood in bounded time. `what` says of which kind."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass(frozen=True)
class Redirect:
    operator: str
    target: str


@dataclass(frozen=True)
class SimpleCommand:
    """One simple command found in a script. Words may hold stand-ins."""

    words: tuple[str, ...]
    redirects: tuple[Redirect, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()
    stdin: str | None = None
    """Text that is fed to it (here-document, here-string, a literal echo before a pipe); UNKNOWN if not known."""
    cwd: str | None = None


@dataclass
class Script:
    commands: list[SimpleCommand] = field(default_factory=list)
    broken: bool = False
    recursive_functions: list[str] = field(default_factory=list)
    """Functions that start themselves more than once: fork bombs."""
    steps: int = 0
    """How much was gone through to read it."""


@dataclass(frozen=True)
class _Around:
    """What the surroundings of a command give it."""

    stdin: str | None = None
    redirects: tuple[Redirect, ...] = ()
    words: tuple[str, ...] = ()
    """Arguments that the grammar took for targets: in `a > f b`, b is an argument of a."""


_NOTHING = _Around()
_FED_BY_A_STRANGER = _Around(stdin=UNKNOWN)


@dataclass(frozen=True)
class Start:
    """What is known before the script runs."""

    cwd: str | None = None
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Tree:
    """A parsed script whose long literal texts are kept aside."""

    root: Node
    folded: Folded

    @property
    def broken(self) -> bool:
        return self.root.has_error


def parse(text: str) -> Tree:
    """The tree of `text`; raises TooComplicated before anything slow happens."""
    folded = fold(text)
    shown = folded.text
    if len(_STRUCTURE.findall(shown)) > _MAX_STRUCTURE:
        raise TooComplicated(f"it has more than {_MAX_STRUCTURE} brackets, operators and lines")
    if shown.count("(") - shown.count(")") > _MAX_OPEN:
        raise TooComplicated(f"it has more than {_MAX_OPEN} brackets that are not closed")
    if shown.count("<<") > _MAX_HEREDOCS:
        raise TooComplicated(f"it has more than {_MAX_HEREDOCS} here-documents")
    if len(_LINEAR.findall(shown)) > _MAX_LINEAR:
        raise TooComplicated(f"it has more than {_MAX_LINEAR} words and quotes")
    root = Parser(_LANGUAGE).parse(shown.encode()).root_node
    if root.descendant_count > _MAX_NODES:
        raise TooComplicated(f"it has more than {_MAX_NODES} syntactic elements")
    return Tree(root, folded)


def text_of(node: Node) -> str:
    return node.text.decode() if node.text is not None else ""


# the strict view


def read_literal(tree: Tree) -> LiteralCommand | None:
    """Segments and operators if the tree holds nothing but literal words; else None."""
    segments: list[tuple[str, ...]] = []
    operators: list[str] = []
    if tree.broken or not _read_list(tree.root, segments, operators, 0):
        return None
    restore = tree.folded.restore
    return LiteralCommand(tuple(tuple(map(restore, segment)) for segment in segments), tuple(operators))


def _read_list(node: Node, segments: list[tuple[str, ...]], operators: list[str], depth: int) -> bool:
    if depth > _MAX_DEPTH:
        return False
    for child in node.children:
        if child.type == "command":
            words = []
            for part in child.children:
                word = _literal_word(part.children[0] if part.type == "command_name" else part)
                if word is None:
                    return False
                words.append(word)
            segments.append(tuple(words))
        elif child.type in ("list", "pipeline"):
            if not _read_list(child, segments, operators, depth + 1):
                return False
        elif child.type in ("&&", "||", ";", "|"):
            operators.append(child.type)
        elif child.type == "\n" and child.next_sibling is None:
            continue
        else:
            return False
    return True


def _literal_word(node: Node) -> str | None:
    if node.type == "number":
        return text_of(node) if node.child_count == 0 else None
    if node.type == "word":
        return _BACKSLASH.sub(r"\1", text_of(node))
    if node.type == "raw_string":
        return text_of(node)[1:-1]
    if node.type == "string":
        if any(child.type not in ('"', "string_content") for child in node.children):
            return None
        return _unescape_double(text_of(node)[1:-1])
    if node.type == "concatenation":
        parts = [_literal_word(child) for child in node.children]
        return None if None in parts else "".join(part for part in parts if part is not None)
    return None


_BACKSLASH = re.compile(r"\\(.)")
_DOUBLE_ESCAPE = re.compile(r'\\(["$`\\\n])')


def _unescape_double(body: str) -> str:
    return _DOUBLE_ESCAPE.sub(lambda m: "" if m[1] == "\n" else m[1], body)


# the generous view


def read_script(text: str, start: Start, tree: Tree | None = None) -> Script:
    """Every command in `text`. Raises TooComplicated."""
    tree = parse(text) if tree is None else tree
    reader = _Reader(start, tree.folded)
    reader.script.broken = tree.broken
    reader.visit(tree.root, 0)
    if tree.broken:
        reader.script.commands += _crude_commands(text, start.cwd)
    return reader.script


_BETWEEN = re.compile(r"[;&|\n()`]+|\$\(")


def _crude_commands(text: str, cwd: str | None) -> list[SimpleCommand]:
    """What broken text might run, for the label only: a broken command is refused in any case."""
    found: list[SimpleCommand] = []
    for chunk in _BETWEEN.split(text[:4096])[:64]:
        plain = chunk.replace("'", "").replace('"', "")
        words = [word for part in plain.split()[:64] for word in expand(mark_unquoted(part, True))]
        if words:
            found.append(SimpleCommand(tuple(words), cwd=cwd))
    # Where commands begin and end is the very thing that is not known: any word may be a program, and all behind it its words.
    plain = re.sub(r"[\\'\"]", "", text[:4096])
    every = plain.split()[:64]
    found += [SimpleCommand(tuple(every[at:]), cwd=cwd) for at in range(len(every))]
    return found


_REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_LEAVES = frozenset(
    {"word", "number", "raw_string", "ansi_c_string", "comment", "heredoc_start", "heredoc_end", "heredoc_content"}
)
_TRANSPARENT = frozenset(
    {
        "subshell",
        "compound_statement",
        "program",
        "list",
        "do_group",
        "if_statement",
        "while_statement",
        "negated_command",
    }
)


@dataclass
class _Redirects:
    redirects: list[Redirect] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    stdin: str | None = None
    trailing: list[Node] = field(default_factory=list)


class _Reader:
    def __init__(self, start: Start, folded: Folded) -> None:
        self.script = Script()
        self.restore = folded.restore
        self.variables = dict(start.variables)
        self.cwd = start.cwd
        self.expanded = 0
        """Characters that variables were replaced by."""

    def _step(self) -> None:
        self.script.steps += 1
        if self.script.steps > _MAX_STEPS:
            raise TooComplicated("its loops and expansions hold each other too often")

    def visit(self, node: Node, depth: int, around: _Around = _NOTHING) -> None:
        self._step()
        if depth > _MAX_DEPTH or len(self.script.commands) > _MAX_COMMANDS:
            raise TooComplicated("it has too many or too deeply nested commands")
        kind = node.type
        if kind == "command":
            self._command(node, depth, around)
        elif kind == "redirected_statement":
            self._redirected(node, depth, around)
        elif kind == "pipeline":
            self._pipeline(node, depth, around)
        elif kind in ("variable_assignment", "variable_assignments"):
            for name, value in self._assignments(node, depth):
                self.variables[name] = value
        elif kind in ("declaration_command", "unset_command"):
            self._declaration(node, depth)
        elif kind == "for_statement":
            self._for(node, depth)
        elif kind == "function_definition":
            self._function(node, depth)
        elif kind not in _LEAVES:
            for child in node.named_children:
                self.visit(child, depth + 1, around if kind in _TRANSPARENT else _NOTHING)

    # words

    def words(self, node: Node, depth: int, quoted: bool = False) -> list[str]:
        return expand(self._word(node, depth, quoted, True))

    def _word(self, node: Node, depth: int, quoted: bool, at_start: bool) -> str:
        self._step()
        kind = node.type
        if depth > _MAX_DEPTH:
            raise TooComplicated("it has too deeply nested commands")
        if kind in ("word", "number", "variable_name", "special_variable_name", "test_operator"):
            return mark_unquoted(text_of(node).lstrip(" \t\n"), at_start)
        if kind == "raw_string":
            return self.restore(text_of(node)[1:-1])
        if kind == "ansi_c_string":
            return decode_ansi_c(text_of(node)[2:-1])
        if kind in ("string", "translated_string"):
            return "".join(self._inside_string(node, depth))
        if kind == "concatenation" or kind == "command_name":
            parts: list[str] = []
            for child in node.children:
                parts.append(self._word(child, depth + 1, quoted, at_start and not parts))
            return "".join(parts)
        if kind in ("simple_expansion", "expansion"):
            return self._expansion(node, depth, quoted)
        if kind == "command_substitution":
            return self._substitution(node, depth, quoted)
        if kind == "process_substitution":
            self._children(node, depth)
            return "/dev/fd/63"
        if kind == "brace_expression":
            return GLOB
        if node.child_count == 0 and not node.is_named:
            return mark_unquoted(text_of(node), at_start)
        self._children(node, depth)
        return UNKNOWN

    def _inside_string(self, node: Node, depth: int) -> Iterator[str]:
        # The grammar leaves blanks around expansions out of the tree: take the text between children as it stands.
        body = text_of(node)
        base = node.start_byte
        raw = body.encode()
        open_at = raw.index(b'"') + 1 if b'"' in raw else 0
        position = base + open_at
        end = node.end_byte - (1 if raw.endswith(b'"') else 0)
        for child in node.named_children:
            if child.type == "string_content" or child.start_byte < position:
                continue
            if child.type == "string":
                yield from self._inside_string(child, depth + 1)
                position = child.end_byte
                continue
            yield _unescape_double(raw[position - base : child.start_byte - base].decode(errors="replace"))
            yield self._word(child, depth + 1, True, False)
            position = child.end_byte
        if position < end:
            yield _unescape_double(raw[position - base : end - base].decode(errors="replace"))

    def _expansion(self, node: Node, depth: int, quoted: bool) -> str:
        name, other, others = "", UNKNOWN, 0
        for child in node.named_children:
            if not name and child.type in ("variable_name", "special_variable_name"):
                name = text_of(child)
            else:
                others += 1
                other = self._word(child, depth + 1, quoted, False)
        raw = text_of(node)
        plain = raw in (f"${name}", f"${{{name}}}")
        if name == "HOME" and (plain or ":" in raw[:8]) and "HOME" not in self.variables:
            return HOME
        if name == "IFS" and not quoted:
            return SPLIT
        if name == "PWD" and plain and self.cwd:
            return self.cwd
        if name in self.variables and plain:
            value = self.variables[name]
            self.expanded += len(value)
            if self.expanded > _MAX_EXPANDED:
                raise TooComplicated("its variables hold too much")
            return value if quoted else re.sub(r"[ \t\n]+", SPLIT, value.replace("*", GLOB).replace("?", GLOB))
        if name and others == 1 and name not in self.variables and (":-" in raw or ":=" in raw):
            return other
        return UNKNOWN

    def _substitution(self, node: Node, depth: int, quoted: bool) -> str:
        before = len(self.script.commands)
        self._children(node, depth)
        inside = self.script.commands[before:]
        printed = literal_output(inside[0]) if len(inside) == 1 else None
        if printed is not None:
            value = printed.rstrip("\n")
            return value if quoted else re.sub(r"[ \t\n]+", SPLIT, value)
        return UNKNOWN

    def _children(self, node: Node, depth: int) -> None:
        cwd, variables = self.cwd, dict(self.variables)
        for child in node.named_children:
            self.visit(child, depth + 1)
        self.cwd, self.variables = cwd, variables

    # commands

    def _command(self, node: Node, depth: int, around: _Around) -> None:
        words: list[str] = []
        assignments: list[tuple[str, str]] = []
        found = _Redirects()
        raw, end = node.text or b"", node.start_byte
        for child in node.children:
            between = raw[end - node.start_byte : child.start_byte - node.start_byte]
            end = child.end_byte
            begins = (child.text or b"")[:1] == b"\n"
            if (begins or b"\n" in between.replace(b"\\\n", b"")) and words:
                # The grammar takes a line that begins with a backslash for more arguments; a shell does not.
                self._emit(tuple(words), (*around.redirects, *found.redirects), tuple(assignments), around.stdin)
                words, assignments = [], []
            if child.type == "variable_assignment":
                assignments += self._assignments(child, depth)
            elif child.type in _REDIRECTS:
                self._redirect(child, depth, found)
            elif child.is_named or child.type not in ("(", ")"):
                words += self.words(child, depth + 1)
        # A redirection before the name swallows the name as well: `< f xargs rm` may come as targets f, xargs, rm.
        words += found.words
        stdin = found.stdin if found.stdin is not None else around.stdin
        self._emit((*words, *around.words), (*around.redirects, *found.redirects), tuple(assignments), stdin)

    def _emit(
        self,
        words: tuple[str, ...],
        redirects: tuple[Redirect, ...],
        assignments: tuple[tuple[str, str], ...] = (),
        stdin: str | None = None,
    ) -> None:
        self.script.commands.append(SimpleCommand(words, redirects, assignments, stdin, self.cwd))
        if not words:
            self.variables.update(assignments)
        elif words[0] in ("cd", "pushd") and len(words) <= 3:
            target = next((word for word in words[1:] if not word.startswith("-")), HOME)
            self.cwd = join(self.cwd, target)

    def _redirected(self, node: Node, depth: int, around: _Around) -> None:
        found = _Redirects()
        body = node.child_by_field_name("body")
        for child in node.named_children:
            if body is not None and child.id == body.id:
                continue
            if child.type in _REDIRECTS:
                self._redirect(child, depth, found)
            else:
                found.trailing.append(child)
        stdin = found.stdin if found.stdin is not None else around.stdin
        together = _Around(stdin, (*around.redirects, *found.redirects), (*found.words, *around.words))
        before = len(self.script.commands)
        if body is not None:
            self.visit(body, depth + 1, together)
        else:
            self._emit(together.words, together.redirects, (), stdin)
        made = self.script.commands[before:]
        printed = literal_output(made[0]) if len(made) == 1 else None
        for child in found.trailing:
            self.visit(child, depth + 1, _Around(stdin=UNKNOWN if printed is None else printed))

    def _redirect(self, node: Node, depth: int, found: _Redirects) -> None:
        if node.type == "herestring_redirect":
            parts = [self._word(child, depth + 1, True, False) for child in node.named_children]
            found.stdin = (parts[0] if parts else "") + "\n"
            found.words += [word for part in parts[1:] for word in expand(part)]
        elif node.type == "heredoc_redirect":
            found.stdin = ""
            for child in node.named_children:
                if child.type == "heredoc_body":
                    found.stdin = self.restore(text_of(child))
                    self._children(child, depth)
                elif child.type in _REDIRECTS:
                    self._redirect(child, depth, found)
                elif child.type in ("word", "string", "raw_string", "concatenation", "number", "simple_expansion"):
                    found.words += self.words(child, depth + 1)
                elif child.type not in ("heredoc_start", "heredoc_end"):
                    found.trailing.append(child)
        else:
            operator = next((text_of(child) for child in node.children if not child.is_named), ">")
            destinations = [child for child in node.named_children if child.type != "file_descriptor"]
            for child in destinations[:1]:
                found.redirects += [Redirect(operator, target) for target in self.words(child, depth + 1)]
            for child in destinations[1:]:
                found.words += self.words(child, depth + 1)

    def _pipeline(self, node: Node, depth: int, around: _Around) -> None:
        fed = around
        for child in node.named_children:
            before = len(self.script.commands)
            self.visit(child, depth + 1, fed)
            made = self.script.commands[before:]
            printed = literal_output(made[0]) if len(made) == 1 else None
            fed = _FED_BY_A_STRANGER if printed is None else _Around(stdin=printed)

    def _assignments(self, node: Node, depth: int) -> list[tuple[str, str]]:
        if node.type == "variable_assignments":
            return [pair for child in node.named_children for pair in self._assignments(child, depth)]
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if name is None:
            return []
        if name.type == "subscript":
            self._children(name, depth)
        word = "" if value is None else self._word(value, depth + 1, True, True)
        return [(text_of(name), word.replace(GLOB, "*"))]

    def _declaration(self, node: Node, depth: int) -> None:
        words = [text_of(node.children[0])] if node.children else []
        for child in node.named_children:
            if child.type == "variable_assignment":
                pairs = self._assignments(child, depth)
                self.variables.update(pairs)
                words += [f"{name}={value}" for name, value in pairs]
            else:
                words += self.words(child, depth + 1)
        self._emit(tuple(words), ())

    def _for(self, node: Node, depth: int) -> None:
        variable = node.child_by_field_name("variable")
        body = node.child_by_field_name("body")
        values = [word for child in node.children_by_field_name("value") for word in self.words(child, depth + 1)]
        if body is None:
            self._children(node, depth)
            return
        for number, value in enumerate(values or [UNKNOWN]):
            enough = number >= _MIN_VALUES and len(self.script.commands) > _MAX_COMMANDS // 4
            if variable is not None:
                self.variables[text_of(variable)] = UNKNOWN if enough else value
            self.visit(body, depth + 1)
            if enough:  # once for all that are left
                break

    def _function(self, node: Node, depth: int) -> None:
        name = node.child_by_field_name("name")
        before = len(self.script.commands)
        self._children(node, depth)
        if name is not None:
            own = text_of(name)
            calls = [c for c in self.script.commands[before:] if c.words and c.words[0] == own]
            if len(calls) >= 2 or (calls and "&" in text_of(node)):
                self.script.recursive_functions.append(own)


def join(cwd: str | None, path: str) -> str | None:
    """Where `cd path` leads from `cwd`; None when that cannot be known."""
    if path.startswith(("/", HOME)):
        return path
    if cwd is None or UNKNOWN in path:
        return None
    return f"{cwd}/{path}"


def literal_output(command: SimpleCommand) -> str | None:
    """What `echo` or `printf` with known words (or a fed `cat`) prints; None for anything else."""
    if any(redirect.operator != "<" for redirect in command.redirects):
        return None
    if command.words == ("cat",) and command.stdin is not None:
        return None if UNKNOWN in command.stdin else command.stdin
    if not command.words or command.words[0] not in ("echo", "printf"):
        return None
    arguments = list(command.words[1:])
    if any(UNKNOWN in word or GLOB in word for word in arguments):
        return None
    if command.words[0] == "printf":
        if not arguments:
            return None
        template = decode_ansi_c(arguments[0])
        values = iter(arguments[1:])
        return re.sub("%[sbq]", lambda _: next(values, ""), template)
    interpret = False
    while arguments and re.fullmatch(r"-[neE]+", arguments[0]):
        interpret = interpret or "e" in arguments.pop(0)
    text = " ".join(arguments)
    return (decode_ansi_c(text) if interpret else text) + "\n"
