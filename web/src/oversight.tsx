// What the owner looks after: who is connected, what may run, what was decided. Shown only, changed on the command line.
import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { attempt } from "./store";

interface Client {
  session: string | null;
  role: string;
  name: string;
  manner: "view" | "raw" | "json" | "mcp";
  kind: string;
  client: string | null;
  since: number;
}

interface Rule {
  effect: string;
  command: string;
  modes: string[];
  cwd: string | null;
  comment: string | null;
  origin: string;
}

interface Policy {
  file: string;
  exists: boolean;
  warning: string | null;
  cwd_roots: string[];
  env_allow: string[];
  blocked: string[];
  rules: Rule[];
}

interface AuditEntry {
  seq: number;
  trace_id?: string;
  by?: string | null;
  ts: string;
  kind: string;
  tool?: string;
  actor?: string;
  role?: string;
  command?: string;
  argv?: string[] | string[][];
  effect?: string;
  outcome?: string;
  reason?: string;
  exit_code?: number | null;
}

function useLoaded<T>(path: string, tick: number): T | null {
  const [value, setValue] = useState<T | null>(null);
  useEffect(() => {
    void attempt(async () => setValue(await get<T>(path)));
  }, [path, tick]);
  return value;
}

const MANNERS = { view: "viewer", raw: "raw stream", json: "events", mcp: "tools" };
const KINDS: Record<string, string> = { page: "page", attach: "wsh attach", "mcp-stdio": "MCP, wsh mcp", "mcp-http": "MCP over HTTP" };

function Clients(props: { tick: number }) {
  const found = useLoaded<{ clients: Client[] }>("/clients", props.tick);
  if (!found) return <p class="soft">Loading…</p>;
  const groups = new Map<string, { client: Client; count: number }>();
  for (const client of found.clients) {
    const key = JSON.stringify([client.session, client.role, client.name, client.manner, client.kind, client.client]);
    const group = groups.get(key);
    if (group) group.count++;
    else groups.set(key, { client, count: 1 });
  }
  if (groups.size === 0) return <p class="soft">Nobody is connected.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th>Session</th>
          <th>Who</th>
          <th>How</th>
          <th>Since</th>
        </tr>
      </thead>
      <tbody>
        {[...groups].map(([key, { client, count }]) => (
          <tr key={key}>
            <td class="mono">{client.session ?? <span class="soft">all</span>}</td>
            <td>
              <bdi>{client.role === client.name ? client.role : `${client.role} ${client.name}`}</bdi>
            </td>
            <td>
              {KINDS[client.kind] ?? MANNERS[client.manner]}
              {KINDS[client.kind] && client.manner !== "mcp" && `, ${MANNERS[client.manner]}`}
              {client.client && (
                <span class="soft">
                  {" "}
                  <bdi>{client.client}</bdi>
                </span>
              )}
              {count > 1 && ` × ${count}`}
            </td>
            <td>{new Date(client.since * 1000).toLocaleTimeString()}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function PolicyView(props: { tick: number }) {
  const policy = useLoaded<Policy>("/policy", props.tick);
  const [word, setWord] = useState("");
  if (!policy) return <p class="soft">Loading…</p>;
  const rules = policy.rules.filter((rule) => `${rule.effect} ${rule.command} ${rule.origin}`.includes(word));
  return (
    <>
      {policy.warning && (
        <p class="why" role="alert">
          {policy.warning}
        </p>
      )}
      <p class="soft">
        <code>{policy.file}</code>
        {policy.exists ? "" : " does not exist: the shipped rules hold."} Change it with <code>wsh policy allow</code> and{" "}
        <code>wsh policy revoke</code>. Folders: {policy.cwd_roots.join(", ") || "any"}. Variables: {policy.env_allow.join(", ") || "none"}.
      </p>
      <input type="search" aria-label="Filter rules" placeholder="Filter rules" value={word} onInput={(e) => setWord(e.currentTarget.value)} />
      <div class="scroll" tabIndex={0} role="region" aria-label="Rules">
        <table>
          <thead>
            <tr>
              <th>Effect</th>
              <th>Command</th>
              <th>Modes</th>
              <th>From</th>
            </tr>
          </thead>
          <tbody>
            {rules.map((rule, index) => (
              <tr key={index}>
                <td>
                  <span class={`verdict ${rule.effect}`}>{rule.effect}</span>
                </td>
                <td class="mono" title={rule.comment ?? undefined}>
                  <bdi>{rule.command}</bdi>
                </td>
                <td>{rule.modes.length === 2 ? "both" : rule.modes.join(", ")}</td>
                <td class="soft">{rule.origin}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function subject(entry: AuditEntry, all: AuditEntry[]): string {
  const own = entry.command ?? (entry.argv ?? []).flat().join(" ");
  if (own || !entry.trace_id) return own;
  // What was decided on stands in the decision of the same trace.
  const decision = all.find((other) => other.trace_id === entry.trace_id && other.kind === "decision");
  return decision ? subject({ ...decision, trace_id: undefined }, []) : "";
}

function AuditTail(props: { tick: number }) {
  const found = useLoaded<{ entries: AuditEntry[] }>("/audit?limit=100", props.tick);
  if (!found) return <p class="soft">Loading…</p>;
  if (found.entries.length === 0) return <p class="soft">Nothing was decided yet.</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Audit entries">
      <table>
        <thead>
          <tr>
            <th>Time</th>
            <th>Kind</th>
            <th>Outcome</th>
            <th>What</th>
            <th>Who</th>
          </tr>
        </thead>
        <tbody>
          {[...found.entries].reverse().map((entry) => {
            const outcome = entry.effect ?? entry.outcome ?? (entry.exit_code === undefined ? "" : `exit ${entry.exit_code}`);
            return (
              <tr key={entry.seq} title={entry.reason}>
                <td class="soft nowrap">{new Date(entry.ts).toLocaleTimeString()}</td>
                <td>{entry.kind}</td>
                <td>
                  <span class={`verdict ${outcome}`}>{outcome}</span>
                </td>
                <td class="mono">
                  <bdi>{subject(entry, found.entries)}</bdi>
                </td>
                <td class="soft">
                  <bdi>{entry.actor ?? entry.role ?? ""}</bdi>
                  {entry.by && (
                    <>
                      , decided by <bdi>{entry.by}</bdi>
                    </>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function Oversight() {
  const [tick, setTick] = useState(0);
  return (
    <>
      <div class="heading">
        <h2>Clients</h2>
        <span class="push" />
        <button onClick={() => setTick(tick + 1)}>Refresh</button>
      </div>
      <Clients tick={tick} />
      <h2>Policy</h2>
      <PolicyView tick={tick} />
      <h2>Audit</h2>
      <p class="soft">
        The newest hundred entries, newest first. <code>wsh policy audit --verify</code> checks that none was changed.
      </p>
      <AuditTail tick={tick} />
    </>
  );
}
