import { useEffect, useState } from "preact/hooks";
import { get, prefix } from "./api";
import { Oversight } from "./oversight";
import { attempt, entries, tell } from "./store";
import { theme, type Theme } from "./theme";

const STDIO = JSON.stringify({ mcpServers: { wsh: { command: "wsh", args: ["mcp"] } } }, null, 2);

export function Admin() {
  const [info, setInfo] = useState<Record<string, string> | null>(null);
  useEffect(() => {
    void attempt(async () => setInfo(await get<Record<string, string>>("/server/info")));
  }, []);
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
      <p>Claude Code, Claude Desktop, Cursor, VS Code and Codex start it themselves:</p>
      <Copy text={STDIO} />
      <p>For Claude Code, one command does it:</p>
      <Copy text="claude mcp add wsh -- wsh mcp" />
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
