import { useEffect, useState } from "preact/hooks";
import { get, getServerInfo, prefix, type ServerInfo } from "./api";
import { Oversight } from "./oversight";
import { attempt, entries, tell } from "./store";
import { theme, type Theme } from "./theme";

const entry = (key: string, typed: boolean): string =>
  JSON.stringify({ [key]: { wsh: { ...(typed ? { type: "stdio" } : {}), command: "wsh", args: ["mcp"] } } }, null, 2);

/** What each MCP client reads, and from where. `wsh mcp install` writes the same. */
const CLIENTS: [name: string, label: string, file: string, text: string][] = [
  ["claude-code", "Claude Code", ".mcp.json", entry("mcpServers", true)],
  ["claude-desktop", "Claude Desktop", "claude_desktop_config.json", entry("mcpServers", false)],
  ["vscode", "VS Code", ".vscode/mcp.json", entry("servers", true)],
  ["cursor", "Cursor", ".cursor/mcp.json", entry("mcpServers", false)],
  ["codex", "Codex", "~/.codex/config.toml", '[mcp_servers.wsh]\ncommand = "wsh"\nargs = ["mcp"]'],
];

interface Health {
  status: string;
  ms: number;
}

function useHealth(): Health | null {
  const [health, setHealth] = useState<Health | null>(null);
  useEffect(() => {
    const look = async (): Promise<void> => {
      const start = performance.now();
      try {
        const { status } = await get<{ status: string }>("/health");
        setHealth({ status, ms: performance.now() - start });
      } catch {
        setHealth({ status: "does not answer", ms: 0 });
      }
    };
    void look();
    const timer = setInterval(() => void look(), 5000);
    return () => clearInterval(timer);
  }, []);
  return health;
}

export function Admin() {
  const [info, setInfo] = useState<ServerInfo | null>(null);
  useEffect(() => {
    void attempt(async () => setInfo(await getServerInfo()));
  }, []);
  const health = useHealth();
  const [chosen, setChosen] = useState("claude-code");
  const client = CLIENTS.find(([name]) => name === chosen) ?? CLIENTS[0];
  const list = [...entries.value.values()];
  const url = `${location.origin}${prefix}/mcp`;
  return (
    <section class="admin">
      <h1>Server</h1>
      <dl class="details">
        <div>
          <dt>host</dt>
          <dd class="mono">{info?.hostname ?? "…"}</dd>
        </div>
        <div>
          <dt>version</dt>
          <dd class="mono">{info?.version ?? "…"}</dd>
        </div>
        <div>
          <dt>health</dt>
          <dd class={health && health.status !== "ok" ? "why" : ""}>
            {health ? health.status : "…"}
            {health?.status === "ok" && <span class="soft">, answers in {Math.max(1, Math.round(health.ms))} ms</span>}
          </dd>
        </div>
        <div>
          <dt>sessions</dt>
          <dd>
            {list.filter((e) => e.info.running).length} running, {list.filter((e) => !e.info.running).length} ended
          </dd>
        </div>
        <div>
          <dt>viewers</dt>
          <dd>{list.reduce((sum, e) => sum + e.info.clients, 0)}</dd>
        </div>
        <div>
          <dt>theme</dt>
          <dd>
            <select aria-label="Theme" value={theme.value} onChange={(e) => (theme.value = e.currentTarget.value as Theme)}>
              <option value="system">system</option>
              <option value="dark">dark</option>
              <option value="light">light</option>
            </select>
          </dd>
        </div>
      </dl>
      <Oversight />
      <h2>Connect an MCP client</h2>
      <div class="tabs plain">
        <div role="tablist" aria-label="MCP client">
          {CLIENTS.map(([name, label]) => (
            <button key={name} role="tab" aria-selected={name === chosen} onClick={() => setChosen(name)}>
              {label}
            </button>
          ))}
        </div>
      </div>
      {client && (
        <>
          <p class="soft">
            In <code>{client[2]}</code>. Or let <code>wsh mcp install --client {client[0]} --write</code> write it.
          </p>
          <Copy text={client[3]} />
        </>
      )}
      <p>Over HTTP, with a token of the agent's own (wsh token --agent NAME):</p>
      <Copy text={`${url}\nAuthorization: Bearer TOKEN`} />
      <p class="soft">
        The API is described at <a href={`${prefix}/docs`}>/docs</a>.
      </p>
    </section>
  );
}

function Copy(props: { text: string }) {
  return (
    <div class="copy">
      <pre>{props.text}</pre>
      <button
        onClick={() =>
          void attempt(async () => {
            await navigator.clipboard.writeText(props.text);
            tell("Copied.");
          })
        }
      >
        Copy
      </button>
    </div>
  );
}
