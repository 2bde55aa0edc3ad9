// Which sessions are side by side: a tree of splits. Kept in this browser, because a layout belongs to the screen that it was made for.
import { computed, effect, signal } from "@preact/signals";
import { choose, entries, listed, renamed, selected, tell, view } from "./store";
import { focusTerminal } from "./terminal";

export interface Pane {
  id: number;
  /** null while nothing was chosen for it. */
  session: string | null;
}
export interface Split {
  id: number;
  /** Side by side, or one above the other. */
  way: "row" | "column";
  /** How much of the room the first part has. */
  share: number;
  first: Layout;
  second: Layout;
}
export type Layout = Pane | Split;

const PRESENT = "wsh.layout";
const SAVED = "wsh.layouts";
const FRONT = "wsh.front";
const LEAST = 0.1;
const STEP = 0.05;
const MOST_PANES = 12;

let lastId = 0;
const nextId = (): number => ++lastId;
export const isSplit = (one: Layout): one is Split => "way" in one;

/** From what was stored; null if it is none of ours. */
function revive(stored: unknown): Layout | null {
  if (typeof stored !== "object" || stored === null) return null;
  const one = stored as Partial<Split & Pane>;
  if (one.way === "row" || one.way === "column") {
    const [first, second] = [revive(one.first), revive(one.second)];
    const share = typeof one.share === "number" ? Math.max(LEAST, Math.min(1 - LEAST, one.share)) : 0.5;
    return first && second ? { id: nextId(), way: one.way, share, first, second } : null;
  }
  return { id: nextId(), session: typeof one.session === "string" ? one.session : null };
}

function read(key: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

export const layout = signal<Layout>(revive(read(PRESENT)) ?? { id: nextId(), session: null });
export const saved = signal<Record<string, Layout>>((read(SAVED) as Record<string, Layout> | null) ?? {});
export const layoutsOpen = signal(false);

export function panesOf(one: Layout): Pane[] {
  return isSplit(one) ? [...panesOf(one.first), ...panesOf(one.second)] : [one];
}
export const panes = computed(() => panesOf(layout.value));
/** The pane that has the keyboard. */
export const front = signal<number>(panesOf(layout.value)[0]?.id ?? 0);

function replace(one: Layout, id: number, change: (found: Layout) => Layout | null): Layout | null {
  if (one.id === id) return change(one);
  if (!isSplit(one)) return one;
  const [first, second] = [replace(one.first, id, change), replace(one.second, id, change)];
  if (first === null || second === null) return first ?? second;
  return first === one.first && second === one.second ? one : { ...one, first, second };
}

function change(id: number, how: (found: Layout) => Layout | null): void {
  layout.value = replace(layout.value, id, how) ?? { id: nextId(), session: selected.peek() };
}

export function setShare(id: number, share: number): void {
  change(id, (found) => (isSplit(found) ? { ...found, share: Math.max(LEAST, Math.min(1 - LEAST, share)) } : found));
}

/** Give the keyboard to a pane, and its session to everything that speaks of the session in front. */
export function enterPane(id: number): void {
  const pane = panes.peek().find((one) => one.id === id);
  if (!pane) return;
  front.value = id;
  if (pane.session !== null && pane.session !== selected.peek()) selected.value = pane.session;
}

export function stepPane(by: number): void {
  view.value = "single";
  const list = panes.value;
  const at = list.findIndex((one) => one.id === front.value);
  const next = list[(at + by + list.length) % list.length];
  if (!next) return;
  enterPane(next.id);
  if (next.session !== null) focusTerminal(next.session);
}

export function splitPane(way: "row" | "column"): void {
  view.value = "single";
  if (panes.value.length >= MOST_PANES) {
    tell(`At most ${MOST_PANES} parts fit.`, undefined, true);
    return;
  }
  const made: Pane = { id: nextId(), session: null };
  change(front.value, (found) => ({ id: nextId(), way, share: 0.5, first: found, second: made }));
  front.value = made.id;
}

/** Take a pane away; its session goes on. */
export function closePane(id = front.value): void {
  if (panes.value.length === 1) {
    tell("This is the only part.", "Kill the session from the menu if you mean that.");
    return;
  }
  const at = panes.value.findIndex((one) => one.id === id);
  change(id, () => null);
  const next = panes.value[Math.max(0, at - 1)];
  if (next) {
    enterPane(next.id);
    if (next.session !== null) focusTerminal(next.session);
  }
}

function parentOf(one: Layout, id: number): Split | null {
  if (!isSplit(one)) return null;
  if (one.first.id === id || one.second.id === id) return one;
  return parentOf(one.first, id) ?? parentOf(one.second, id);
}

/** Make the pane in front larger or smaller. */
export function growPane(by: number): void {
  const parent = parentOf(layout.value, front.value);
  if (parent) setShare(parent.id, parent.share + (parent.first.id === front.value ? by : -by) * STEP);
}

/** Show a session in a pane; where it is shown already, that pane comes to the front. */
export function show(id: number, session: string): void {
  front.value = id;
  choose(session);
}

export function saveLayout(name: string): void {
  saved.value = { ...saved.value, [name]: layout.value };
  localStorage.setItem(SAVED, JSON.stringify(saved.value));
  tell(`Layout ${name} is kept in this browser.`);
}

export function openLayout(name: string): void {
  const made = revive(saved.value[name]);
  if (!made) return;
  layout.value = made;
  const first = panesOf(made).find((one) => one.session !== null && entries.peek().has(one.session)) ?? panesOf(made)[0];
  view.value = "single";
  if (first) enterPane(first.id);
}

export function deleteLayout(name: string): void {
  const { [name]: _, ...others } = saved.value;
  saved.value = others;
  localStorage.setItem(SAVED, JSON.stringify(others));
}

export function followLayout(): void {
  // A page that is opened again is where it was.
  selected.value = localStorage.getItem(FRONT);
  // Whatever chooses a session chooses it for the pane in front, unless another pane shows it.
  effect(() => {
    const session = selected.value;
    if (session === null) return;
    const list = panesOf(layout.peek());
    const there = list.find((one) => one.session === session);
    if (there) front.value = there.id;
    else change(front.peek(), (found) => (isSplit(found) ? found : { ...found, session }));
  });
  effect(() => {
    const now = renamed.value;
    if (now === null) return;
    for (const pane of panesOf(layout.peek())) if (pane.session === now[0]) change(pane.id, (found) => ({ ...found, session: now[1] }));
  });
  effect(() => {
    if (!listed.value) return;
    localStorage.setItem(PRESENT, JSON.stringify(layout.value));
    if (selected.value !== null) localStorage.setItem(FRONT, selected.value);
  });
}
