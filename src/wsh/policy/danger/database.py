"""Database clients: the SQL or the command they are given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wsh.policy.danger.model import RiskModel, Scene, always, danger, program
from wsh.policy.parse.option import Arguments
from wsh.policy.parse.word import UNKNOWN
from wsh.policy.verdict import Kind, RiskReason

_OPENS = re.compile(r"--|/\*(?!!)|['\"`\[]|\$\w{0,32}\$")
_QUOTED = {
    "'": re.compile(r"'(?:[^'\\]|''|\\.)*'", re.DOTALL),
    '"': re.compile(r"\"(?:[^\"\\]|\"\"|\\.)*\"", re.DOTALL),
}
_CLOSES = {"--": "\n", "/*": "*/", "`": "`", "[": "]"}
_MAX_TAGS = 32
_MAX_NOISE = 4000
_DESTROYS = re.compile(
    r"\b(?:drop\s+(?:\w+\s+){0,2}(?:database|schema|table|index|view|column|role|user|function|procedure|trigger|type|"
    r"sequence|extension|tablespace|keyspace|collection|owned|partition|constraint|publication|subscription|policy|"
    r"materialized|server|domain|rule|event|package|login|domain)|truncate\b|delete\s+(?:\w+\s+)?from|"
    r"update\s+(?:only\s+)?\S{1,200}\s+(?:as\s+\S{1,200}\s+)?set\b|"
    r"replace\s+into|flush\s+(?:tables|privileges|logs)|reset\s+(?:master|slave|all)|purge\s+(?:binary|master)|"
    r"detach\s+database|revoke\b|shutdown\b|pg_terminate_backend|kill\s+\d)",
    re.IGNORECASE | re.DOTALL,
)
_SHELLS_OUT = re.compile(
    r"(?:^|[;\n])[^\S\n]*(?:\\!|\.shell|\.system|system)\s+([^\n]+)|\bto\s+program\s+'([^']*)'", re.IGNORECASE
)
_DOCUMENT_DESTROYS = re.compile(
    r"\.(?:drop(?:Database|Index|Indexes|User|Role)?|deleteOne|deleteMany|remove|findOneAndDelete|bulkWrite|"
    r"renameCollection|shutdownServer)\s*\("
)


_ALTERS, _DROPS = re.compile(r"\balter\b", re.IGNORECASE), re.compile(r"\bdrop\b", re.IGNORECASE)


def is_destructive_sql(text: str) -> bool:
    plain = _without_noise(text).replace("/*!", " ")
    if _DESTROYS.search(plain):
        return True
    alters = (_ALTERS.search(statement) for statement in plain.split(";"))
    return any(_DROPS.search(found.string, found.end()) for found in alters if found is not None)


def _without_noise(text: str) -> str:
    """`text` without what strings, quoted names and comments say (MySQL's executable comments apart).

    In time that grows with the text, whatever it is: once something was not closed, its kind is not looked for again,
    and after many pieces no more are taken out. What stays in can only make the text look worse.
    """
    out: list[str] = []
    never_closed: set[str] = set()
    position = 0
    while len(out) < _MAX_NOISE and (found := _OPENS.search(text, position)):
        sign, start = found[0], found.start()
        if sign in never_closed or (sign[0] == "$" and len(never_closed) > _MAX_TAGS):
            end = -1
        elif sign in _QUOTED:
            quoted = _QUOTED[sign].match(text, start)
            end = -1 if quoted is None else quoted.end()
        else:
            closing = _CLOSES.get(sign, sign)
            end = text.find(closing, found.end())
            end = len(text) if end < 0 and sign == "--" else end + len(closing) if end >= 0 else -1
        if end < 0:
            never_closed.add(sign)
            out.append(text[position : found.end()])
            position = found.end()
            continue
        out += (text[position:start], " " if sign in ("--", "/*") else "'_'")
        position = end
    out.append(text[position:])
    return "".join(out)


def _sql(options: str, operands_from: int | None) -> RiskModel:
    names = tuple(options.split())

    def check(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
        texts = arguments.values(*names)
        if operands_from is not None:
            texts += arguments.operands[operands_from:]
        if scene.stdin not in (None, UNKNOWN):
            texts.append(scene.stdin or "")
        for text in texts:
            for match in _SHELLS_OUT.finditer(text):
                yield from scene.look_text(match[1] or match[2] or "")
            if is_destructive_sql(text):
                yield scene.found(Kind.DATABASE, "drops, deletes or changes data")
                return

    values = (
        "-h -u -P -D -S -U -d -p -f -o -F -R -T -v -E -i -s --host --user --port --database --socket --username "
        "--dbname "
        "--file --output --field-separator --variable --set --defaults-file --password --init-command"
    )
    # -p of mysql takes its value attached only.
    return program(check=check, values=values.replace(" -p ", " ") + " " + options)


def _mongo(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    for text in [*arguments.values("--eval"), scene.stdin or ""]:
        if _DOCUMENT_DESTROYS.search(text):
            yield scene.found(Kind.DATABASE, "drops or deletes data")
            return


_REDIS = re.compile(
    r"^(?:flushall|flushdb|del|unlink|shutdown|getdel|rename|migrate|restore|spop|ltrim|xtrim|zrem.*)$", re.IGNORECASE
)


def _redis(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    first = arguments.operands[:1] or (scene.stdin or "").split()[:1]
    if first and _REDIS.match(first[0]):
        yield scene.found(Kind.DATABASE, "removes data")


def _framework(pattern: str) -> RiskModel:
    return program(danger(Kind.DATABASE, "drops or resets a database", operand=pattern))


PROGRAMS: Mapping[str, RiskModel] = {
    "mysql mariadb": _sql("-e --execute", None),
    "psql cockroach pgcli": _sql("-c -C --command --execute -e", None),
    "sqlite3 sqlite duckdb": _sql("-cmd -c", 1),
    "clickhouse-client clickhouse": _sql("-q --query --multiquery", None),
    "sqlcmd osql": _sql("-Q -q", None),
    "cqlsh snowsql vsql presto trino hive beeline impala-shell bteq": _sql("-e --execute -q --query -f", None),
    "mysqladmin mariadb-admin": program(
        danger(Kind.DATABASE, "drops a database or stops the server", operand=r"^(?:drop|shutdown|kill|flush-.*)$"),
        values="-h -u -P -S --host --user --port --socket",
    ),
    "dropdb dropuser pg_dropcluster pg_resetwal pg_archivecleanup": always(Kind.DATABASE, "drops a database or a user"),
    "pg_restore": program(
        danger(Kind.DATABASE, "drops objects before restoring them", "-c --clean"), values="-d -h -U -p -j"
    ),
    "mongo mongosh": program(check=_mongo, values="--eval --host --port -u -p --username --password"),
    "mongorestore": program(danger(Kind.DATABASE, "drops collections before restoring them", "--drop")),
    "redis-cli valkey-cli keydb-cli": program(
        check=_redis, values="-h -p -a -n -u -r -i -s --user --pass --cacert --cert --key --tls --db", permute=False
    ),
    "rails rake": _framework(r"^db:(?:drop|reset|purge|truncate_all|rollback|migrate:reset|schema:load)"),
    "artisan": _framework(r"^(?:migrate:(?:fresh|reset|refresh|rollback)|db:wipe)$"),
    "manage.py django-admin": _framework(r"^(?:flush|reset_db|sqlflush)$"),
    "prisma sequelize knex typeorm": _framework(
        r"^(?:reset|db:drop|migrate:rollback|schema:drop|db:migrate:undo(?::all)?)$"
    ),
    "alembic": _framework(r"^downgrade$"),
    "flyway liquibase": _framework(r"^(?:clean|drop-all|dropAll|undo|rollback)"),
}
