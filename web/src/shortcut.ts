// Keys of the page itself. They stand behind one leader, so that the terminal keeps all others; a few have a direct way with Alt besides.
// Every key has one owner: an open dialog, else the leader, else what has the focus, else the terminal in front.
import { signal } from "@preact/signals";
import { copyBlock, linkBlock, runBlock, stepBlock } from "./block";
import { ordered } from "./group";
import { closePane, growPane, layoutsOpen, splitPane, stepPane } from "./layout";
import { captured, choose, connection, creating, finding, inspector, leader, listed, opening, paletteOpen, searchTick, selected, sheetOpen, tell, USUAL_LEADER, view } from "./store";
import { fitSession, focusTerminal, releaseKeys, settleFocus, takeStrayKey, typeLiterally } from "./terminal";
import { zoom } from "./theme";

export interface Shortcut {
  /** The key behind the leader. */
  key: string;
  /** Another way, without the leader. */
  direct?: string;
  does: string;
  run: () => void;
}

export const directKeys = signal(localStorage.getItem("wsh.direct-keys") !== "no");
/** The leader was pressed: the next key is the page's. */
export const pending = signal(false);

export function setLeader(keys: string): void {
  leader.value = keys;
  localStorage.setItem("wsh.leader", keys);
}

export function setDirectKeys(on: boolean): void {
  directKeys.value = on;
  localStorage.setItem("wsh.direct-keys", on ? "yes" : "no");
}

/** A key press in words, such as `Ctrl+B`; null while only a modifier is down. */
export function wordsOf(event: KeyboardEvent): string | null {
  if (["Control", "Alt", "Shift", "Meta", "AltGraph"].includes(event.key)) return null;
  const key = event.code.startsWith("Key") ? event.code.slice(3) : event.key;
  return [event.ctrlKey && "Ctrl", event.altKey && "Alt", event.shiftKey && key.length > 1 && "Shift", event.metaKey && "Meta", key].filter(Boolean).join("+");
}

function step(by: number): void {
  const names = ordered.value.map((entry) => entry.info.name);
  const at = names.indexOf(selected.value ?? "");
  const next = names[(at + by + names.length) % names.length];
  if (next !== undefined) choose(next);
}

function find(): void {
  view.value = "single";
  finding.value = true;
  document.querySelector<HTMLInputElement>(".find input")?.focus(); // where it is open already
}

function search(): void {
  view.value = "search";
  searchTick.value++; // also where it is shown already: the keyboard goes into its field
}

export const SHORTCUTS: readonly Shortcut[] = [
  { key: "k", does: "Command palette", run: () => (paletteOpen.value = true) },
  { key: "?", does: "Keys", run: () => (sheetOpen.value = true) },
  { key: "n", direct: "Alt+N", does: "New session", run: () => (creating.value = true) },
  { key: "g", direct: "Alt+G", does: "Grid of all sessions", run: () => (view.value = view.value === "grid" ? "single" : "grid") },
  { key: "q", direct: "Alt+Q", does: "Sessions that want attention", run: () => (view.value = "queue") },
  { key: "s", direct: "Alt+S", does: "Search", run: search },
  { key: "f", direct: "Ctrl+Shift+F", does: "Find in this terminal", run: find },
  { key: "i", direct: "Alt+I", does: "Show or hide the inspector", run: () => (inspector.value = inspector.value ? null : "commands") },
  { key: "r", does: "Replay this session", run: () => (view.value = "replay") },
  { key: "t", does: "Back to the terminal", run: () => ((view.value = "single"), selected.value && focusTerminal(selected.value)) },
  { key: "z", does: "Fit: give the session this window's size", run: () => selected.value && fitSession(selected.value) },
  { key: "[", direct: "Ctrl+Shift+ArrowUp", does: "Previous command", run: () => void stepBlock(-1) },
  { key: "]", direct: "Ctrl+Shift+ArrowDown", does: "Next command", run: () => void stepBlock(1) },
  { key: "y", does: "Copy that command's output", run: () => void copyBlock() },
  { key: "a", does: "Run that command again", run: () => void runBlock() },
  { key: "l", does: "Copy a link to that command", run: () => void linkBlock() },
  { key: "|", does: "Split to the right", run: () => splitPane("row") },
  { key: "_", does: "Split below", run: () => splitPane("column") },
  { key: "o", does: "Next part", run: () => stepPane(1) },
  { key: "x", does: "Close this part", run: () => closePane() },
  { key: ">", does: "Larger part", run: () => growPane(1) },
  { key: "<", does: "Smaller part", run: () => growPane(-1) },
  { key: "w", does: "Layouts", run: () => (layoutsOpen.value = true) },
  { key: "ArrowUp", direct: "Alt+ArrowUp", does: "Previous session", run: () => step(-1) },
  { key: "ArrowDown", direct: "Alt+ArrowDown", does: "Next session", run: () => step(1) },
  { key: "=", direct: "Ctrl+=", does: "Larger type", run: () => zoom(1) },
  { key: "-", direct: "Ctrl+-", does: "Smaller type", run: () => zoom(-1) },
];

/** Keys as they are written: a letter large, an arrow as one. */
export const spelt = (keys: string): string => (keys.length === 1 ? keys.toUpperCase() : keys.replace("ArrowUp", "↑").replace("ArrowDown", "↓"));

/** How a shortcut is written in tooltips and in the palette. */
export function keysOf(shortcut: Shortcut): string {
  return shortcut.direct && (directKeys.value || !shortcut.direct.startsWith("Alt")) ? spelt(shortcut.direct) : `${leader.value} ${spelt(shortcut.key)}`;
}

export const keysFor = (key: string): string => keysOf(SHORTCUTS.find((one) => one.key === key) as Shortcut);

function matches(event: KeyboardEvent, keys: string): boolean {
  const parts = keys.split("+");
  const key = parts.pop() || "+";
  return (
    event.ctrlKey === parts.includes("Ctrl") &&
    (event.shiftKey || !parts.includes("Shift")) &&
    event.altKey === parts.includes("Alt") &&
    event.metaKey === parts.includes("Meta") &&
    (event.key.toLowerCase() === key.toLowerCase() || (/^[a-z]$/i.test(key) && event.code === `Key${key.toUpperCase()}`) || (key === "\\" && event.code === "Backslash" && event.ctrlKey))
  );
}

/** What the key after the leader does. */
function follow(event: KeyboardEvent): void {
  pending.value = false;
  if (event.key === "Escape") return;
  if (matches(event, leader.value) || (event.key === "\\" && leader.value === USUAL_LEADER)) {
    if (selected.value !== null && view.value === "single") typeLiterally(selected.value, leader.value);
    return;
  }
  const found = SHORTCUTS.find((one) => one.key.toLowerCase() === event.key.toLowerCase());
  if (found) found.run();
  else tell(`${leader.value} ${event.key} does nothing.`, `${leader.value} ? shows the keys.`);
}

const isField = (element: Element | null): boolean => element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement;

/** Whether the page takes this key. */
function take(event: KeyboardEvent): boolean {
  const moved = settleFocus();
  if (event.isComposing || document.querySelector("dialog[open]")) return false;
  if (pending.value) {
    if (wordsOf(event) !== null) follow(event);
    return true;
  }
  if (matches(event, leader.value)) {
    // While an agent has captured the keys the leader takes them back.
    if (captured.value && selected.value !== null && view.value === "single") releaseKeys(selected.value);
    else pending.value = true;
    return true;
  }
  const direct = SHORTCUTS.find((one) => one.direct && (directKeys.value || !one.direct.startsWith("Alt")) && matches(event, one.direct));
  if (direct) {
    direct.run();
    return true;
  }
  if (opening.value !== null) return takeStrayKey(event, null);
  const focus = document.activeElement;
  if (focus === null || focus === document.body || moved) {
    // While the list of sessions is on its way a terminal is about to appear.
    if (view.value === "single" && (selected.value !== null || (!listed.value && connection.value !== "signed-out"))) return takeStrayKey(event, selected.value);
  }
  if (event.key === "?" && !isField(focus) && !event.ctrlKey && !event.altKey) {
    sheetOpen.value = true;
    return true;
  }
  return false;
}

export function listenToKeys(): void {
  // In the capture phase, before the emulator sees them.
  window.addEventListener(
    "keydown",
    (event) => {
      if (!take(event)) return;
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
}
