import { Timeline } from "./block";
import { keysFor } from "./shortcut";
import { current, inspector } from "./store";

const TABS = [
  ["commands", "Commands"],
  ["details", "Details"],
] as const;

export function Inspector() {
  const entry = current.value;
  if (!entry) return null;
  return (
    <aside class="inspector" aria-label="Commands and details">
      <div class="tabs">
        <div role="tablist" aria-label="About this session">
          {TABS.map(([tab, label]) => (
            <button key={tab} role="tab" aria-selected={inspector.value === tab} onClick={() => (inspector.value = tab)}>
              {label}
            </button>
          ))}
        </div>
        <span class="push" />
        <button title={`Hide (${keysFor("i")})`} aria-label="Hide" onClick={() => (inspector.value = null)}>
          ×
        </button>
      </div>
      {inspector.value === "commands" ? <Timeline key={entry.info.name} name={entry.info.name} /> : <Details />}
    </aside>
  );
}

function Details() {
  const entry = current.value;
  if (!entry) return null;
  const { info, state } = entry;
  const rows: [string, string][] = [
    ["command", info.command],
    ["folder", info.cwd],
    ["process", String(info.pid ?? "none")],
    ["size", `${info.rows} × ${info.cols}`],
    ["clients", String(info.clients)],
    ["title", info.title || "none"],
    ["kept on disk", info.journal === "ok" ? "yes" : info.journal === "off" ? "no (journal.enabled)" : "no: the disk refuses it"],
    ["sandbox", info.sandbox ? `${info.sandbox.profile} (${info.sandbox.backend})` : "off"],
    ["tags", info.tags.join(" ") || "none"],
    ["foreground", state?.foreground?.argv.join(" ") ?? "unknown"],
    ["waits for input", state?.input_wanted ?? "unknown"],
    ["hidden prompt", state?.hidden_prompt ?? "unknown"],
    ["at its prompt", state?.at_prompt ?? "unknown"],
    ["typed last", state?.last_input ? `${state.last_input.by} ${state.last_input.name}` : "nobody"],
    ["taken over by", state?.taken_by ?? "nobody"],
  ];
  return (
    <dl class="details">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="mono">
            <bdi>{value}</bdi>
          </dd>
        </div>
      ))}
    </dl>
  );
}
