import { useEffect, useState } from "preact/hooks";
import { getCommandOutput, listCommands, type CommandInfo } from "./api";
import { copyText } from "./clipboard";
import { keysFor } from "./shortcut";
import { attempt, commandTick, current, inspector, tell } from "./store";
import { emulators, enter } from "./terminal";

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

function Timeline(props: { name: string }) {
  const [commands, setCommands] = useState<CommandInfo[] | null>(null);
  const tick = commandTick.value;
  useEffect(() => {
    listCommands(props.name)
      .then(setCommands)
      .catch(() => setCommands([]));
  }, [props.name, tick]);
  if (commands === null) return <p class="soft pad">Loading…</p>;
  if (commands.length === 0) {
    return <p class="soft pad">No commands known. They appear for bash, zsh and fish that wsh started.</p>;
  }
  return (
    <ol class="timeline">
      {[...commands].reverse().map((command) => (
        <Item key={command.id} name={props.name} command={command} />
      ))}
    </ol>
  );
}

function Item(props: { name: string; command: CommandInfo }) {
  const [output, setOutput] = useState<string | null>(null);
  const { command, name } = props;
  const load = async (): Promise<string | undefined> =>
    attempt(async () => {
      const { lines } = await getCommandOutput(name, String(command.id), { format: "plain" });
      const text = lines.join("\n");
      setOutput(text);
      return text;
    });
  const running = command.exit_code === null && command.duration_ms === null;
  return (
    <li class={running ? "running" : command.exit_code === 0 ? "good" : "bad"}>
      <details onToggle={(event) => event.currentTarget.open && output === null && void load()}>
        <summary>
          <span class="code">{running ? "…" : (command.exit_code ?? "?")}</span>
          <code>
            <bdi>{command.command}</bdi>
          </code>
          <span class="soft time">{duration(command.duration_ms)}</span>
        </summary>
        <div class="actions">
          <button onClick={() => jump(name, command)}>Show in terminal</button>
          <button
            onClick={() =>
              void (async () => {
                const text = output ?? (await load());
                if (text !== undefined) {
                  if (await copyText(text)) tell("Output copied.");
                  else tell("The browser did not let the clipboard be written.", undefined, true);
                }
              })()
            }
          >
            Copy output
          </button>
          <button onClick={() => enter(name, command.command)}>Run again</button>
        </div>
        <pre class="output">{output ?? "Loading…"}</pre>
      </details>
    </li>
  );
}

function jump(name: string, command: CommandInfo): void {
  const terminal = emulators.get(name);
  if (!terminal) return;
  const needle = command.command.split("\n")[0] ?? "";
  const buffer = terminal.buffer.active;
  for (let line = buffer.length - 1; line >= 0; line--) {
    if (buffer.getLine(line)?.translateToString(true).includes(needle)) {
      terminal.scrollToLine(line);
      terminal.selectLines(line, line);
      return;
    }
  }
  tell("That command has scrolled out of this window.", "Its output is kept in the timeline.");
}

function duration(ms: number | null): string {
  if (ms === null) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  return s < 60 ? `${s.toFixed(1)} s` : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
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
