import { useLayoutEffect, useRef } from "preact/hooks";
import { Timeline } from "./block";
import { keysFor } from "./shortcut";
import { current, inspector, narrow } from "./store";
import { focusTerminal, settleFocusSoon } from "./terminal";

const TABS = [
  ["commands", "Commands"],
  ["details", "Details"],
] as const;

/** A click in here leaves the keyboard in the terminal, unless text was selected to be copied. */
function keepFocus(event: MouseEvent): void {
  if (event.target instanceof Element && event.target.closest("summary, button")) event.preventDefault();
}

function giveBack(name: string): void {
  const focus = document.activeElement;
  if (narrow.peek()) return; // there it would bring up the keyboard
  if (focus instanceof HTMLElement && focus.closest(".inspector") && getSelection()?.isCollapsed !== false) focusTerminal(name);
}

export function Inspector() {
  const sheet = useRef<HTMLElement>(null);
  // On a phone it lies over the terminal, and has the keyboard.
  useLayoutEffect(() => {
    if (narrow.peek()) sheet.current?.focus();
  }, []);
  const entry = current.value;
  if (!entry) return null;
  return (
    <aside
      ref={sheet}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        if (narrow.peek()) inspector.value = null;
        else focusTerminal(entry.info.name);
      }}
      class="inspector" aria-label="Commands and details"
      onMouseDown={keepFocus}
      // Whether text is selected is known when the click is over: one into such a text lets go of it.
      onMouseUp={() => settleFocusSoon(() => giveBack(entry.info.name))}
    >
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
    ["size", `${info.cols} × ${info.rows}`],
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
