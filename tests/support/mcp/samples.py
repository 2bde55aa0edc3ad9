"""Texts such as terminals and files show, of many kinds and the same on every machine: what a count of tokens is held against."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import uuid
from pathlib import Path

ROOT = Path(__file__).parents[3]

_WORDS = (
    "server client request answer session terminal output cursor window buffer journal keeper policy token folder file line screen error "
    "config index search update delete insert create result value number string array object model handler worker queue thread process "
    "signal socket stream reader writer parser lexer engine cache store table column row schema version release package module function"
).split()
_PEOPLE = ("alice", "bob", "carol", "deploy", "root", "www-data", "postgres", "ubuntu")
_SERVICES = ("api-gateway", "billing", "auth-service", "frontend", "worker-3", "scheduler", "ingest", "notifier")

PYTHON = '''
class ConnectionPool:
    """Hands out connections and takes them back; never more than `limit` exist at once."""

    def __init__(self, address: str, limit: int = 10, timeout: float = 5.0) -> None:
        self._address = address
        self._idle: deque[Connection] = deque()
        self._waiting: list[asyncio.Future[Connection]] = []
        self._limit = limit
        self._timeout = timeout

    async def acquire(self) -> Connection:
        if self._idle:
            return self._idle.popleft()
        if self._count < self._limit:
            self._count += 1
            return await open_connection(self._address, timeout=self._timeout)
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            return await asyncio.wait_for(future, self._timeout)
        except asyncio.TimeoutError:
            self._waiting.remove(future)
            raise PoolExhausted(f"no connection to {self._address} within {self._timeout} s") from None

    def release(self, connection: Connection) -> None:
        while self._waiting:
            future = self._waiting.pop(0)
            if not future.done():
                future.set_result(connection)
                return
        self._idle.append(connection)
'''
TYPESCRIPT = """
export interface TerminalOptions { rows: number; cols: number; theme?: Partial<Theme>; onResize?: (size: Size) => void }

export class TerminalView extends HTMLElement {
  private readonly canvas = document.createElement("canvas");
  #frames: Frame[] = [];
  static get observedAttributes() { return ["rows", "cols"]; }

  connectedCallback(): void {
    this.attachShadow({ mode: "open" })?.append(this.canvas);
    const observer = new ResizeObserver(([entry]) => this.fit(entry.contentRect));
    observer.observe(this);
  }

  async load(url: string, { signal }: { signal?: AbortSignal } = {}): Promise<void> {
    const response = await fetch(url, { headers: { accept: "application/json" }, signal });
    if (!response.ok) throw new Error(`cannot load ${url}: ${response.status} ${response.statusText}`);
    for (const frame of (await response.json()) as Frame[]) {
      this.#frames.push({ ...frame, lines: frame.lines.map((line) => line.trimEnd()) });
    }
    requestAnimationFrame(() => this.paint());
  }
}
"""
C_SOURCE = """
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int ring_write(struct ring *ring, const uint8_t *data, size_t len)
{
	size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	size_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	if (len > ring->size - (head - tail))
		return -EAGAIN;
	for (size_t i = 0; i < len; i++)
		ring->data[(head + i) & (ring->size - 1)] = data[i];
	atomic_store_explicit(&ring->head, head + len, memory_order_release);
	return 0;
}

int main(int argc, char **argv)
{
	struct ring *ring = calloc(1, sizeof(*ring) + RING_SIZE);
	if (!ring) {
		fprintf(stderr, "%s: out of memory: %s\\n", argv[0], strerror(errno));
		return EXIT_FAILURE;
	}
	ring->size = RING_SIZE;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (ring_write(ring, (const uint8_t *)line, strlen(line)) == -EAGAIN)
			usleep(1000);
	}
	free(ring);
	return EXIT_SUCCESS;
}
"""
RUST = """
use std::collections::HashMap;
use std::io::{self, BufRead, Write};

#[derive(Debug, Clone, PartialEq)]
pub enum Token<'a> { Word(&'a str), Pipe, Redirect { fd: u32, target: &'a str }, End }

impl<'a> Lexer<'a> {
    pub fn new(input: &'a str) -> Self { Self { input, position: 0, marks: Vec::with_capacity(16) } }

    pub fn next_token(&mut self) -> Result<Token<'a>, LexError> {
        self.skip_whitespace();
        match self.peek() {
            None => Ok(Token::End),
            Some('|') => { self.position += 1; Ok(Token::Pipe) }
            Some(c) if c.is_ascii_digit() => self.read_redirect(),
            Some(_) => Ok(Token::Word(self.read_word()?)),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for line in io::stdin().lock().lines() {
        *counts.entry(line?.to_lowercase()).or_insert(0) += 1;
    }
    let mut sorted: Vec<_> = counts.into_iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1));
    for (word, count) in sorted.iter().take(10) { writeln!(io::stdout(), "{count:>8} {word}")?; }
    Ok(())
}
"""
SHELL = """
#!/usr/bin/env bash
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${VERSION:=$(git describe --tags --always --dirty)}"
for target in linux-amd64 linux-arm64 darwin-arm64; do
  out="dist/${target}/app"
  mkdir -p "$(dirname "$out")"
  GOOS=${target%-*} GOARCH=${target#*-} CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o "$out" ./cmd/app
  sha256sum "$out" | awk '{print $1}' > "$out.sha256"
  [[ -n ${SIGN_KEY:-} ]] && gpg --batch --yes --local-user "$SIGN_KEY" --detach-sign "$out" || echo "unsigned: $out" >&2
done
find dist -type f -name 'app*' -print0 | xargs -0 ls -lh
if ! grep -qE '^[0-9]+\\.[0-9]+' <<<"$VERSION"; then echo "not a release: $VERSION"; exit 1; fi
curl -fsSL -H "Authorization: Bearer $TOKEN" --retry 3 "https://example.org/upload?version=$VERSION" -T dist.tar.gz
"""
PROSE = """
The keeper is a small process that owns every pseudo terminal. When the server dies, nothing is lost: the keeper goes on reading what programs
print, writes it to the journal, and waits for the next server. People rarely notice. A reader who comes later sees the same screen, byte for
byte, because the journal names the offset of each piece and the snapshot says where it was taken. There is one exception, which the manual
explains in detail: output that was printed while the disk was full cannot be recovered, and the session says so.

Before you upgrade, read the release notes. Most changes need no action at all; a few rename settings, and the old names continue to work for
one release. If something goes wrong, `doctor` will usually tell you what, and how to fix it. Otherwise open an issue with the log attached.
"""
GERMAN = """
Der Verwalter ist ein kleiner Prozess, dem alle Terminals gehören. Stirbt der Server, geht nichts verloren: Was Programme ausgeben, wird weiterhin
gelesen, ins Protokoll geschrieben und später nachgereicht. Die meisten Benutzer bemerken davon überhaupt nichts. Vor einer Aktualisierung sollten
Sie die Versionshinweise lesen; einige Einstellungen heißen künftig anders, die früheren Bezeichnungen funktionieren jedoch noch eine Weile.
Falls etwas schiefgeht, erklärt die Fehlermeldung in der Regel, woran es lag und welche Möglichkeiten bestehen.
"""
FRENCH = """
Le gardien est un petit processus qui possède tous les terminaux. Quand le serveur s'arrête, rien n'est perdu : ce que les programmes écrivent est
toujours lu, consigné dans le journal, puis transmis au serveur suivant. La plupart des utilisateurs ne s'en aperçoivent même pas. Avant une mise à
jour, lisez les notes de version ; certains réglages changent de nom, mais les anciens fonctionnent encore pendant quelque temps.
"""
RUSSIAN = """
Хранитель — это небольшой процесс, которому принадлежат все терминалы. Если сервер завершится, ничего не пропадёт: вывод программ по-прежнему
читается, записывается в журнал и передаётся следующему серверу. Большинство пользователей этого даже не замечает. Перед обновлением прочитайте
примечания к выпуску: некоторые настройки переименованы, но старые имена пока работают. Если что-то пошло не так, сообщение об ошибке объяснит причину.
"""
CHINESE = """
守护进程是一个很小的程序,所有终端都归它管理。服务器退出时不会丢失任何内容:程序的输出仍然会被读取并写入日志,然后交给下一个服务器。
大多数用户根本不会察觉。升级之前请阅读发行说明;有些设置改了名字,但旧名称在一段时间内仍然有效。如果出现问题,错误信息通常会说明原因以及解决办法。
正在下载依赖包,请稍候……安装完成,共更新了十二个文件。警告:配置文件中的选项已经过时,建议使用新的格式。
"""
JAPANESE = """
キーパーは小さなプロセスで、すべての端末を所有しています。サーバーが終了しても何も失われません。プログラムの出力は引き続き読み取られ、ジャーナルに書き込まれ、
次のサーバーに渡されます。ほとんどの利用者は気づきません。更新する前にリリースノートをお読みください。いくつかの設定は名前が変わりましたが、古い名前もしばらく使えます。
エラーが発生しました。ファイルが見つかりません。もう一度やり直してください。
"""
KOREAN = """
키퍼는 모든 터미널을 소유하는 작은 프로세스입니다. 서버가 종료되어도 아무것도 사라지지 않습니다. 프로그램의 출력은 계속 읽혀서 저널에 기록되고 다음 서버로
전달됩니다. 대부분의 사용자는 이를 알아차리지 못합니다. 업그레이드하기 전에 릴리스 노트를 읽어 주세요. 일부 설정은 이름이 바뀌었지만 이전 이름도 당분간 사용할 수 있습니다.
오류가 발생했습니다. 파일을 찾을 수 없습니다. 다시 시도해 주세요.
"""
EMOJI = """
✅ build passed in 12s 🎉
❌ tests failed: 3 of 120 😱
🚀 deploying api-gateway to production…
⚠️  disk almost full (91 %) 💾
🔒 certificate renewed, valid for 90 days 📅
🐛 fixed: cursor jumped after resize 🔧 thanks @alice ❤️
📦 installing packages 🧪 running checks ✨ done
👀 watching for changes 🔁 restarted 4 times 🔥🔥🔥
"""
HTML = """
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sessions</title><link rel="stylesheet" href="/static/app.css?v=31"></head>
<body class="dark"><main id="root" data-version="1.4.2">
<table><thead><tr><th scope="col">Name</th><th scope="col">State</th></tr></thead>
<tbody><tr class="row is-running"><td><a href="/sessions/build">build</a></td><td aria-live="polite">running</td></tr></tbody></table>
<script type="module" src="/static/main.js" integrity="sha384-abc" crossorigin="anonymous"></script>
</main></body></html>
"""
SQL = """
SELECT u.id, u.email, count(o.id) AS orders, coalesce(sum(o.total_cents), 0) / 100.0 AS revenue
FROM users AS u LEFT JOIN orders AS o ON o.user_id = u.id AND o.created_at >= now() - interval '30 days'
WHERE u.deleted_at IS NULL AND u.email LIKE '%@example.org'
GROUP BY u.id, u.email HAVING count(o.id) > 3 ORDER BY revenue DESC NULLS LAST LIMIT 50;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS idx_orders_user_created ON orders (user_id, created_at DESC);
INSERT INTO audit_log (actor, action, payload) VALUES ('deploy', 'migrate', '{"version": 42}'::jsonb) ON CONFLICT DO NOTHING;
"""
TRACEBACK = """
Traceback (most recent call last):
  File "/srv/app/.venv/lib/python3.12/site-packages/requests/adapters.py", line 667, in send
    resp = conn.urlopen(method=request.method, url=url, body=request.body, headers=request.headers, retries=self.max_retries)
  File "/srv/app/.venv/lib/python3.12/site-packages/urllib3/connectionpool.py", line 843, in urlopen
    retries = retries.increment(method, url, error=new_e, _pool=self, _stacktrace=sys.exc_info()[2])
urllib3.exceptions.MaxRetryError: HTTPConnectionPool(host='localhost', port=5432): Max retries exceeded with url: /health
Exception in thread "main" java.lang.NullPointerException: Cannot invoke "String.length()" because "name" is null
	at org.example.billing.InvoiceService.render(InvoiceService.java:128)
	at org.example.billing.InvoiceController$$FastClassBySpringCGLIB$$1.invoke(<generated>)
	at org.springframework.web.servlet.DispatcherServlet.doDispatch(DispatcherServlet.java:1089)
"""
BOXES = """
┌──────────────┬─────────┬────────────┐
│ service      │ state   │ uptime     │
├──────────────┼─────────┼────────────┤
│ api-gateway  │ running │ 12 days    │
│ billing      │ stopped │ —          │
└──────────────┴─────────┴────────────┘
.
├── src
│   ├── main.rs
│   └── terminal
│       ├── mod.rs
│       └── screen.rs
└── Cargo.toml
Downloading ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 4.2/4.2 MB 12.1 MB/s eta 0:00:00
[████████████████████░░░░░░░░░░░░░░░░░░░░] 50% 120/240
"""
YAML = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: api-gateway
  namespace: production
  labels: {app: api-gateway, tier: frontend}
spec:
  replicas: 3
  selector:
    matchLabels:
      app: api-gateway
  template:
    spec:
      containers:
        - name: gateway
          image: registry.example.org/team/api-gateway:1.14.2
          ports:
            - containerPort: 8080
          env:
            - name: DATABASE_URL
              valueFrom: {secretKeyRef: {name: database, key: url}}
          resources:
            limits: {cpu: 500m, memory: 256Mi}
          readinessProbe:
            httpGet: {path: /healthz, port: 8080}
            initialDelaySeconds: 5
"""


def make_samples() -> dict[str, str]:
    """Name of a kind, and a text of that kind."""
    chance = random.Random(11)
    plain = {
        "python": PYTHON, "typescript": TYPESCRIPT, "c": C_SOURCE, "rust": RUST, "shell": SHELL, "prose": PROSE,
        "german": GERMAN, "french": FRENCH, "russian": RUSSIAN, "chinese": CHINESE, "japanese": JAPANESE, "korean": KOREAN,
        "emoji": EMOJI, "html": HTML, "sql": SQL, "traceback": TRACEBACK, "boxes": BOXES, "yaml": YAML,
    }  # fmt: skip
    return plain | {
        "ps": _ps(chance),
        "syslog": _syslog(chance),
        "access log": _access(chance),
        "json log": _json_log(chance),
        "json": _json(chance, None),
        "json, indented": _json(chance, 2),
        "csv": _csv(chance),
        "paths": _paths(chance),
        "urls": _urls(chance),
        "uuids": _uuids(chance),
        "hex dump": _hexdump(chance),
        "checksums": "\n".join(f"{hashlib.sha256(word.encode()).hexdigest()}  {word}.tar.gz" for word in _WORDS),
        "base64": base64.encodebytes(chance.randbytes(2500)).decode(),
        "npm": _npm(chance),
        "docker": _docker(chance),
        "apt": _apt(chance),
        "git status": _git_status(chance),
        "colours": "\n".join(f"\x1b[3{n % 8}m{word}\x1b[0m \x1b[1mok\x1b[22m" for n, word in enumerate(_WORDS)),
    }


def _word(chance: random.Random) -> str:
    return chance.choice(_WORDS)


def _address(chance: random.Random) -> str:
    return ".".join(str(chance.randrange(1, 255)) for _ in range(4))


def _clock(chance: random.Random) -> str:
    return f"{chance.randrange(24):02}:{chance.randrange(60):02}:{chance.randrange(60):02}"


def _ps(chance: random.Random) -> str:
    rows = ["USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND"]
    for _ in range(40):
        user, pid = chance.choice(_PEOPLE), chance.randrange(2, 99_000)
        rows.append(
            f"{user:<8} {pid:>7} {chance.random() * 9:>4.1f} {chance.random() * 4:>4.1f} {chance.randrange(900_000):>6} "
            f"{chance.randrange(90_000):>5} ?        Ssl  {_clock(chance)[:5]}   0:{chance.randrange(60):02} "
            f"/usr/bin/{_word(chance)} --{_word(chance)}={chance.randrange(99)} /etc/{_word(chance)}/{_word(chance)}.conf"
        )
    return "\n".join(rows)


def _syslog(chance: random.Random) -> str:
    said = (
        "Started {}.service - the {} of this host.", "session opened for user {} by (uid=0)", "{}: connection from {} refused",
        "device eth0 entered promiscuous mode ({} {})", "Failed to start {}: {} not found", "{} took too long, killing {}",
    )  # fmt: skip
    return "\n".join(
        f"Nov {chance.randrange(1, 28):>2} {_clock(chance)} web-{chance.randrange(9)} {_word(chance)}[{chance.randrange(30_000)}]: "
        + chance.choice(said).format(_word(chance), _word(chance))
        for _ in range(40)
    )


def _access(chance: random.Random) -> str:
    return "\n".join(
        f'{_address(chance)} - - [16/Nov/2026:{_clock(chance)} +0000] "{chance.choice(("GET", "POST", "DELETE"))} '
        f'/api/v1/{_word(chance)}s/{chance.randrange(9999)}?limit={chance.randrange(100)} HTTP/1.1" '
        f'{chance.choice((200, 201, 304, 404, 500))} {chance.randrange(90_000)} "-" "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0"'
        for _ in range(40)
    )


def _json_log(chance: random.Random) -> str:
    return "\n".join(
        json.dumps(
            {
                "ts": f"2026-11-16T{_clock(chance)}.{chance.randrange(999):03}Z",
                "level": chance.choice(("info", "warn", "error")),
                "service": chance.choice(_SERVICES),
                "msg": f"{_word(chance)} {_word(chance)} finished",
                "duration_ms": round(chance.random() * 900, 2),
                "request_id": uuid.UUID(int=chance.getrandbits(128)).hex[:16],
            }
        )
        for _ in range(30)
    )


def _json(chance: random.Random, indent: int | None) -> str:
    rows = [
        {
            "id": n,
            "name": f"{_word(chance)}-{_word(chance)}",
            "running": n % 2 == 0,
            "size": [24, 80],
            "tags": [_word(chance), _word(chance)],
            "parent": None,
        }
        for n in range(40)
    ]
    return json.dumps(rows, indent=indent, separators=None if indent else (",", ":"))


def _csv(chance: random.Random) -> str:
    rows = ["id,name,email,created_at,amount,active"]
    rows += [
        f"{n},{_word(chance).title()} {_word(chance).title()},{_word(chance)}@example.org,2026-0{chance.randrange(1, 9)}-1{n % 9},"
        f"{chance.random() * 1000:.2f},{chance.choice(('true', 'false'))}"
        for n in range(60)
    ]
    return "\n".join(rows)


def _paths(chance: random.Random) -> str:
    roots = (
        "/usr/lib/x86_64-linux-gnu",
        "/home/alice/projects",
        "./node_modules/@types",
        "/var/lib/docker/overlay2",
        "src/main/java/org/example",
    )
    ends = (".so.6", ".py", ".d.ts", ".json", ".java", ".conf", "_test.go", ".log.1.gz")
    return "\n".join(
        f"{chance.choice(roots)}/{_word(chance)}/{_word(chance)}_{_word(chance)}{chance.choice(ends)}"
        for _ in range(80)
    )


def _urls(chance: random.Random) -> str:
    return "\n".join(
        f"https://{_word(chance)}.example.org/{_word(chance)}/{_word(chance)}-{chance.randrange(999)}?{_word(chance)}={_word(chance)}"
        f"&page={chance.randrange(20)}#{_word(chance)}"
        for _ in range(60)
    )


def _uuids(chance: random.Random) -> str:
    return "\n".join(f"{uuid.UUID(int=chance.getrandbits(128))}  {_word(chance)}" for _ in range(60))


def _hexdump(chance: random.Random) -> str:
    rows = []
    for at in range(60):
        data = chance.randbytes(16)
        pairs = " ".join(data[n : n + 2].hex() for n in range(0, 16, 2))
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
        rows.append(f"{at * 16:08x}: {pairs}  {shown}")
    return "\n".join(rows)


def _npm(chance: random.Random) -> str:
    rows = [
        f"npm warn deprecated {_word(chance)}@{chance.randrange(9)}.{chance.randrange(20)}.{chance.randrange(9)}: This package is no longer supported."
        for _ in range(12)
    ]
    rows += [
        "",
        "added 812 packages, and audited 813 packages in 14s",
        "",
        "142 packages are looking for funding",
        "  run `npm fund` for details",
    ]
    rows += [
        f"npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error Found: react@{n}.2.0"
        for n in (17, 18)
    ]
    rows += [
        f"dist/assets/{_word(chance)}-{uuid.UUID(int=chance.getrandbits(128)).hex[:8]}.js   {chance.random() * 400:.2f} kB │ gzip: {chance.random() * 99:.2f} kB"
        for _ in range(20)
    ]
    return "\n".join(rows)


def _docker(chance: random.Random) -> str:
    rows = [
        "CONTAINER ID   IMAGE                          COMMAND                  CREATED        STATUS        PORTS                    NAMES"
    ]
    rows += [
        f"{uuid.UUID(int=chance.getrandbits(128)).hex[:12]}   example/{chance.choice(_SERVICES)}:1.{chance.randrange(30)}   "
        f'"/docker-entrypoint.…"   {chance.randrange(2, 9)} days ago     Up {chance.randrange(2, 9)} hours    0.0.0.0:{chance.randrange(3000, 9999)}->80/tcp   {chance.choice(_SERVICES)}'
        for _ in range(15)
    ]
    rows += [
        f"#{n} [{n}/9] RUN apt-get update && apt-get install -y --no-install-recommends {_word(chance)}\n#{n} DONE {chance.random() * 9:.1f}s"
        for n in range(5, 12)
    ]
    return "\n".join(rows)


def _apt(chance: random.Random) -> str:
    rows = []
    for n in range(1, 25):
        name = f"lib{_word(chance)}{chance.randrange(1, 9)}"
        rows.append(
            f"Get:{n} http://mirror.example/debian bookworm/main amd64 {name} amd64 1.{chance.randrange(40)}-{n}+deb12u{n % 4} [{chance.randrange(900)} kB]"
        )
        rows.append(f"Setting up {name}:amd64 (1.{chance.randrange(40)}-{n}+deb12u{n % 4}) ...")
    return "\n".join(rows)


def _git_status(chance: random.Random) -> str:
    rows = [
        "On branch main",
        "Your branch is ahead of 'origin/main' by 3 commits.",
        '  (use "git push" to publish your local commits)',
        "",
    ]
    rows += [f"\tmodified:   src/{_word(chance)}/{_word(chance)}.py" for _ in range(20)]
    rows += [
        f" {_word(chance)}/{_word(chance)}.rs | {chance.randrange(90):>3} {'+' * chance.randrange(1, 30)}{'-' * chance.randrange(1, 12)}"
        for _ in range(20)
    ]
    rows += [
        f"{hashlib.sha1(word.encode()).hexdigest()[:7]} Fix the {word} when the {_word(chance)} is empty"
        for word in _WORDS[:30]
    ]
    return "\n".join(rows)


def make_printouts() -> dict[str, str]:
    """What terminals print, the same on every machine."""
    chance = random.Random(7)
    names = sorted(path.name for path in (ROOT / "src" / "wsh").rglob("*.py"))
    sources = sorted((ROOT / "src" / "wsh" / "session").glob("*.py"))
    paths = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.py"))
    months = ("Jan", "Mar", "Jun", "Nov")
    listing = [
        f"-rw-r--r-- 1 root root {chance.randrange(90_000):>6} {chance.choice(months)} {chance.randrange(10, 28)} "
        f"{chance.randrange(10, 23)}:{chance.randrange(10, 59)} {name}"
        for name in names
    ]
    grep = [f"{path}:{chance.randrange(1, 300)}:    def run(self) -> None:" for path in paths]
    pytest_lines = [
        f"tests/{name.removesuffix('.py')}/test_{name}::test_it_works {chance.choice(('PASSED', 'FAILED'))} [{at % 100:3}%]"
        for at, name in enumerate(names)
    ]
    compiler = [
        f"gcc -O2 -Wall -c src/{name.removesuffix('.py')}.c -o build/{name.removesuffix('.py')}.o\n"
        f"src/{name.removesuffix('.py')}.c:{at + 10}:5: warning: unused variable 'count' [-Wunused-variable]"
        for at, name in enumerate(names)
    ]
    commits = [
        f"commit {hashlib.sha1(name.encode()).hexdigest()}\nAuthor: A Person <person@example.org>\n"
        f"Date:   Mon {months[at % 4]} {at % 28 + 1} 12:{at % 50 + 10}:00 2026 +0000\n\n    Rename {name} and say what it does\n"
        for at, name in enumerate(names)
    ]
    diff = "\n".join(f"{'+- '[at % 3]}{line}" for at, line in enumerate(sources[3].read_text().splitlines()))
    return {
        "ls -l": "\n".join(listing),
        "find": "\n".join(paths),
        "grep": "\n".join(grep),
        "pytest": "\n".join(pytest_lines),
        "make": "\n".join(compiler),
        "git log": "\n".join(commits),
        "git diff": diff,
        "source": "\n".join(path.read_text() for path in sources[:6]),
        "prose": (ROOT / "docs" / "keeper.md").read_text(),
        "seq": "\n".join(map(str, range(1, 4000))),
        "json": json.dumps(
            [{"id": at, "name": name, "running": at % 2 == 0} for at, name in enumerate(names)], indent=1
        ),
        "sha256sum": "\n".join(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}" for name in names),
        "base64": base64.encodebytes(chance.randbytes(6000)).decode(),
    }
