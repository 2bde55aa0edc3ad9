"""Arguments and results of the six tools as JSON Schema. `VERSION` rises whenever their meaning changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from wsh.wire.json.object import JsonObject
from wsh.wire.setting import Settings
from wsh.workspace.file.symbol import KINDS
from wsh.workspace.search.search import MATCHES, MODES

VERSION = 2
DEFAULT_TIMEOUT_MS = 30_000
DEFAULT_MAX_BYTES = 64 * 1024
MAX_MAX_BYTES = 4 * 1024 * 1024
MAX_TIMEOUT_MS = 86_400_000

Schema: TypeAlias = JsonObject


def _text(description: str, **more: object) -> Schema:
    return {"type": "string", "description": description, **more}


def _whole(description: str, minimum: int, maximum: int, **more: object) -> Schema:
    return {"type": "integer", "minimum": minimum, "maximum": maximum, "description": description, **more}


def _flag(description: str, default: bool) -> Schema:
    return {"type": "boolean", "default": default, "description": description}


def _one_or_more(item: Schema, description: str) -> Schema:
    many = {"type": "array", "items": item, "minItems": 1, "maxItems": 64}
    return {"type": ["string", "array"], "anyOf": [item, many], "description": description}


_WORD: Schema = {"type": "string", "minLength": 1, "maxLength": 1000}
_WORKSPACE = _text(
    "Folder to work in; any existing directory. Default: the caller's working directory.", minLength=1, maxLength=4096
)


@dataclass(frozen=True)
class SchemaEntry:
    title: str
    description: str
    properties: dict[str, Schema]
    required: tuple[str, ...]
    output: Schema
    read_only: bool = True

    def input_schema(self, timeout_ms: int) -> Schema:
        timeout = _whole(
            "Deadline of this call in milliseconds; past it the work is stopped and TOOL_TIMEOUT is returned.",
            1,
            MAX_TIMEOUT_MS,
            default=timeout_ms,
        )
        again = _whole("Another spelling of timeoutMs.", 1, MAX_TIMEOUT_MS)
        found: Schema = {
            "type": "object",
            "properties": {**self.properties, "timeoutMs": timeout, "timeout_ms": again},
            "additionalProperties": False,
        }
        if self.required:
            found["required"] = list(self.required)
        return found


def _object(required: str, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required.split()}


_COUNT: Schema = {"type": "integer"}
_COUNTS: Schema = {"type": "object", "additionalProperties": {"type": "integer"}}
_STRING: Schema = {"type": "string"}
_MAYBE: Schema = {"type": ["string", "null"]}
_MAYBE_COUNT: Schema = {"type": ["integer", "null"]}
_WARNINGS: Schema = {"type": "array", "items": _object("code message", code=_STRING, message=_STRING)}
_TRANSCRIPTS: Schema = {"type": ["object", "null"]}

_BUILD_OUT = _object(
    "workspace mode full files chunks bytes skippedByReason rebuilt durationMs",
    workspace=_STRING,
    mode=_STRING,
    full={"type": "boolean"},
    files={"type": ["object", "null"], "additionalProperties": {"type": "integer"}},
    chunks=_COUNT,
    bytes=_COUNT,
    skippedByReason=_COUNTS,
    listedBy=_STRING,
    rebuilt={"type": ["object", "null"]},
    transcripts=_TRANSCRIPTS,
    durationMs=_COUNT,
)
_STATUS_OUT = _object(
    "workspace exists running watched problem transcripts",
    workspace=_STRING,
    watched={"type": "boolean"},
    exists={"type": "boolean"},
    sources={"type": "array", "items": _STRING},
    files=_COUNT,
    chunks=_COUNT,
    byKind=_COUNTS,
    bySource=_COUNTS,
    byLanguage=_COUNTS,
    skippedByReason=_COUNTS,
    textBytes=_COUNT,
    sizeBytes=_COUNT,
    builtAt=_STRING,
    ageSeconds={"type": "number"},
    format=_COUNT,
    listedBy=_MAYBE,
    stale=_object("added changed removed", added=_COUNT, changed=_COUNT, removed=_COUNT),
    running={"type": ["object", "null"]},
    problem={"type": ["object", "null"]},
    transcripts=_TRANSCRIPTS,
)
_SNIPPET = _object(
    "startLine text matches",
    startLine=_COUNT,
    text=_STRING,
    matches={"type": "array", "items": _object("line start end", line=_COUNT, start=_COUNT, end=_COUNT)},
)
_HIT = _object(
    "id source path startLine endLine lang kind name scope score matchCount snippet",
    id=_STRING,
    source={"type": "string", "enum": ["code", "prose", "transcript"]},
    path=_MAYBE,
    startLine=_COUNT,
    endLine=_COUNT,
    lang=_MAYBE,
    kind=_STRING,
    name=_MAYBE,
    scope=_MAYBE,
    score={"type": "number"},
    matchCount=_COUNT,
    snippet=_SNIPPET,
    transcript={"type": "object"},
    explain={"type": "object"},
)
_SEARCH_OUT = _object(
    "workspace query match searched hits nextCursor durationMs warnings",
    workspace=_STRING,
    query=_STRING,
    match=_STRING,
    searched={"type": "array", "items": _STRING},
    hits={"type": "array", "items": _HIT},
    nextCursor=_MAYBE,
    durationMs={"type": "number"},
    warnings=_WARNINGS,
    explain={"type": "object"},
)
_SHOW_OUT = _object(
    "workspace source path size binary encoding sha256 text startLine endLine totalLines truncated indexed "
    "changedSinceIndex",
    workspace=_STRING,
    id=_MAYBE,
    source={"type": "string", "enum": ["file", "transcript"]},
    path=_MAYBE,
    size=_COUNT,
    lang=_MAYBE,
    binary={"type": "boolean"},
    mimeType=_MAYBE,
    headHex=_STRING,
    encoding=_MAYBE,
    sha256=_MAYBE,
    text=_MAYBE,
    startLine=_MAYBE_COUNT,
    endLine=_MAYBE_COUNT,
    totalLines=_MAYBE_COUNT,
    truncated={"type": "boolean"},
    modifiedAt=_MAYBE,
    indexed={"type": "boolean"},
    changedSinceIndex={"type": ["boolean", "null"]},
    transcript={"type": "object"},
)
_CHECK_OUT = _object(
    "versions limits capabilities warnings queue policy",
    versions={"type": "object"},
    limits={"type": "object"},
    capabilities={"type": "object"},
    warnings=_WARNINGS,
    queue={"type": "object"},
    policy={"type": "object"},
)
_WORKSPACE_OUT = _object(
    "workspace roots git modes sessions",
    workspace=_STRING,
    roots={"type": "array", "items": _STRING},
    git={"type": ["object", "null"]},
    modes={
        "type": "object",
        "additionalProperties": _object("available reason", available={"type": "boolean"}, reason=_MAYBE),
    },
    sessions={"type": "array", "items": {"type": "object"}},
)

TOOLS: dict[str, SchemaEntry] = {
    "index_build": SchemaEntry(
        "Build the search index",
        "Build or update the search index of a workspace: its code and prose (git-aware) and the transcripts of "
        "terminals. Incremental by default and quick when little has changed. Reports progress; a cancelled or failed "
        "build leaves the old index as it was.",
        {
            "workspace": _WORKSPACE,
            "mode": {
                "type": "string",
                "enum": list(MODES),
                "default": "all",
                "description": "What to build: code, prose, transcripts of terminals, or all of them.",
            },
            "full": _flag("Read everything again instead of only what changed.", False),
            "paths": {
                "type": "array",
                "items": _WORD,
                "minItems": 1,
                "maxItems": 1000,
                "description": "Only these files or folders of the workspace. Not for transcripts.",
            },
        },
        (),
        _BUILD_OUT,
        read_only=False,
    ),
    "index_status": SchemaEntry(
        "State of the search index",
        "Tell whether a workspace has an index, what it holds by kind and language, its size and age, how many files "
        "were added, changed and removed since, and whether a build is running.",
        {"workspace": _WORKSPACE},
        (),
        _STATUS_OUT,
    ),
    "search": SchemaEntry(
        "Search code, prose and terminals",
        "Ranked search over a workspace's code and prose and over everything that terminals printed. Hits have a "
        "path, a line range, a snippet with match positions, a score and an id for show_file. Words are matched "
        "without regard to case, and parts of camelCase and snake_case names are words too; literal and regex match "
        "exactly ((?i) makes a regex ignore case).",
        {
            "query": _text(
                'What to look for. With match words: all words must occur; OR, NOT or a leading -, "phrases", '
                "(brackets) and prefix* are understood. With literal and regex the text is taken as it is.",
                minLength=1,
                maxLength=4000,
            ),
            "workspace": _WORKSPACE,
            "match": {
                "type": "string",
                "enum": list(MATCHES),
                "default": "words",
                "description": "How the query is matched: ranked words, exact text, or a regular expression.",
            },
            "mode": {"type": "string", "enum": list(MODES), "default": "all", "description": "Where to search."},
            "path": _one_or_more(
                _WORD, "Globs of files: src/**, *.py, docs; a leading ! leaves files out. Narrows to files."
            ),
            "lang": _one_or_more(_WORD, "Languages, such as python or markdown. Narrows to files."),
            "kind": _one_or_more(
                {"type": "string", "enum": list(KINDS)}, "Kinds of chunk, such as function, class, heading or command."
            ),
            "name": _text(
                "Name of the symbol or heading; * and ? stand for any text. Narrows to files.",
                minLength=1,
                maxLength=500,
            ),
            "modifiedAfter": _text("Only files changed after this time (ISO 8601, or 7d, 12h, 30m ago)."),
            "session": _one_or_more(_WORD, "Names of terminal sessions. Narrows to transcripts."),
            "exitCode": {
                "type": "integer",
                "description": "Exit code of the command. Narrows to transcripts.",
            },
            "since": _text("Only commands that ran after this time (ISO 8601, or 2h ago). Narrows to transcripts."),
            "until": _text("Only commands that began before this time. Narrows to transcripts."),
            "top": _whole("How many hits.", 1, 100, default=10),
            "cursor": _text("nextCursor of the page before, with the same query and filters.", minLength=1),
            "contextLines": _whole("Lines around the match in a snippet.", 0, 50, default=2),
            "explain": _flag("Say how the query was read and how each score came about.", False),
        },
        ("query",),
        _SEARCH_OUT,
    ),
    "show_file": SchemaEntry(
        "Show a file",
        "Show lines of a file of the workspace, or of a hit by its id (transcripts too), with encoding, SHA-256 and "
        "whether it changed since it was indexed. Files outside the workspace are FORBIDDEN; binary files are "
        "described.",
        {
            "workspace": _WORKSPACE,
            "path": _text("File, relative to the workspace or absolute. Either this or id.", minLength=1),
            "id": _text("Id of a hit; shows its lines unless others are asked for. Either this or path.", minLength=1),
            "startLine": _whole("First line, from 1.", 1, 1_000_000_000),
            "endLine": _whole("Last line, included.", 1, 1_000_000_000),
            "maxBytes": _whole("Most bytes of text to return.", 1, MAX_MAX_BYTES, default=DEFAULT_MAX_BYTES),
        },
        (),
        _SHOW_OUT,
    ),
    "check_status": SchemaEntry(
        "State of this installation",
        "Versions, limits, queue, capabilities (which languages have a grammar, whether the desktop extra is "
        "installed), policy state, and coded warnings.",
        {},
        (),
        _CHECK_OUT,
    ),
    "workspace_status": SchemaEntry(
        "State of a workspace",
        "Roots, git state, which search modes are available and why others are not, and the live sessions in it.",
        {"workspace": _WORKSPACE},
        (),
        _WORKSPACE_OUT,
    ),
}


def find_timeout_ms(settings: Settings, name: str) -> int:
    """How long a call may take that does not say it."""
    setting = {"index_build": "index.timeout_ms", "search": "index.search_timeout_ms"}.get(name)
    return DEFAULT_TIMEOUT_MS if setting is None else settings.get_int(setting)
