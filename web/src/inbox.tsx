// The inbox below the cards: programs that ask, and commands that ended. J and K choose, Enter opens, E is done, S snoozes.
import "./inbox.css";
import { computed, signal } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { listInbox, markInbox, type Inbox, type InboxEntry } from "./api";
import { waitingApprovals } from "./approvals";
import { attempt, choose, connection, looked, paletteOpen, creating, selected, view } from "./store";
import { focusTerminal } from "./terminal";

const EVERY_MS = 2000;
const HIDDEN_TURNS = 5;

/** So long after a key in a session its person is still there. */
const THERE_S = 30;

export const inbox = signal<Inbox>({ items: [], wants: 0 });
/** How many wait for a person: not those that were just answered, nor the one that the person works in. */
export const wanting = computed(() => {
  const asked = new Set(waitingApprovals().map((one) => one.id));
  const front = view.value === "single" ? selected.value : null;
  const counts = (entry: InboxEntry): boolean => (entry.kind === "request" ? asked.has(entry.request_id ?? "") : entry.session !== front);
  return inbox.value.items.filter((entry) => entry.wants && counts(entry)).length;
});

/** When the person pressed the last key in a session here. */
const pressed = new Map<string, number>();
const putAside = new Set<string>();

/** Whether it ended under the eyes of the person, who was at work in that session. */
function wasSeen(entry: InboxEntry): boolean {
  const at = pressed.get(entry.session ?? "");
  return !entry.wants && at !== undefined && looked(entry.session ?? "") && Date.now() / 1000 - entry.age_ms / 1000 - at < THERE_S;
}

/** Questions to the server so far, and the newest of them whose answer is shown: an older answer may come later. */
let asked = 0;
let shown = 0;

async function look(): Promise<void> {
  if (connection.peek() !== "connected") return;
  const turn = ++asked;
  try {
    const found = await listInbox();
    if (turn < shown) return;
    shown = turn;
    const seen = found.items.filter((entry) => wasSeen(entry) && !putAside.has(entry.id));
    for (const entry of seen) {
      putAside.add(entry.id);
      await markInbox(entry.id, { action: "done" }).catch(() => undefined);
    }
    if (seen.length > 0) return await look();
    if (JSON.stringify(found) !== JSON.stringify(inbox.peek())) inbox.value = found;
  } catch {
    // That the server is gone, or this browser no longer signed in, is said elsewhere.
  }
}

/** Every two seconds while somebody looks; less often for the badge alone. */
export function followInbox(): void {
  let turn = 0;
  setInterval(() => {
    if (document.visibilityState === "visible" || ++turn % HIDDEN_TURNS === 0) void look();
  }, EVERY_MS);
  const press = (): void => {
    const name = selected.peek();
    if (name !== null && looked(name)) pressed.set(name, Date.now() / 1000);
  };
  addEventListener("keydown", press, true);
  document.addEventListener("visibilitychange", () => void look());
  connection.subscribe(() => void look());
}

/** The entry that has the keyboard when the list is drawn next. */
let next: string | null = null;

async function mark(entry: InboxEntry, action: "done" | "snooze"): Promise<void> {
  const after = neighbour(entry.id);
  const found = await attempt(() => markInbox(entry.id, { action }));
  if (!found) return;
  shown = ++asked;
  next = after;
  inbox.value = found;
}

const rows = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>(".queue .approval:not(.over), .queue .entry > .row")];
const find = (id: string): HTMLElement | undefined => rows().find((row) => row.dataset.entry === id);

/** The entry that takes its place in the list when it goes. */
function neighbour(id: string): string | null {
  const ids = rows().flatMap((row) => row.dataset.entry ?? []);
  const at = ids.indexOf(id);
  return ids[at + 1] ?? ids[at - 1] ?? null;
}

function step(by: number): void {
  const all = rows();
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const row = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  if (row && !row.matches("button")) row.tabIndex = -1;
  row?.focus();
}

function listen(event: KeyboardEvent): void {
  if (event.ctrlKey || event.altKey || event.metaKey || paletteOpen.peek() || creating.peek()) return;
  const target = event.target as HTMLElement;
  if (target.closest("input, textarea, select, [contenteditable], dialog")) return;
  const chosen = inbox.peek().items.find((item) => item.id === target.dataset.entry);
  if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "e" && chosen) void mark(chosen, "done");
  else if (event.key === "s" && chosen) void mark(chosen, "snooze");
  else if (event.key === "Enter" && target.matches(".approval")) target.querySelector<HTMLElement>("button:enabled")?.focus();
  else return;
  event.preventDefault();
}

function age(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

const word = (entry: InboxEntry): string => (entry.kind === "failed" ? `failed ${entry.exit_code ?? ""}` : entry.kind);

export function InboxList() {
  useEffect(() => {
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
  const items = inbox.value.items.filter((entry) => entry.kind !== "request");
  // With the list, not after the next frame: a key that comes in between would be lost.
  useLayoutEffect(() => {
    if (next !== null) find(next)?.focus();
    next = null;
  }, [inbox.value]);
  return (
    <>
      {items.length === 0 && wanting.value === 0 && (
        <p class="soft">Nothing. Programs that ask, and commands that failed or took long, come here.</p>
      )}
      <ul class="inbox" aria-label="Inbox">
        {items.map((entry) => (
          <li key={entry.id} class="entry">
            <button
              class="row"
              data-entry={entry.id}
              title="Open (Enter)"
              onClick={() => {
                if (entry.session === null) return;
                choose(entry.session);
                focusTerminal(entry.session);
              }}
            >
              <span class="kind" data-kind={entry.kind}>{word(entry)}</span>
              <bdi>{entry.session}</bdi>
              <span class="soft mono">
                <bdi>{entry.line || entry.what}</bdi>
              </span>
              <time class="soft">{age(entry.age_ms)}</time>
            </button>
            <button class="quiet" title="Hide for an hour (S)" aria-label={`Snooze ${entry.session ?? ""}`} onClick={() => void mark(entry, "snooze")}>
              Snooze
            </button>
            <button class="quiet" title="Done (E)" aria-label={`Done ${entry.session ?? ""}`} onClick={() => void mark(entry, "done")}>
              Done
            </button>
          </li>
        ))}
      </ul>
      {items.length > 0 && <p class="soft keys-hint">J and K choose, Enter opens, E is done, S hides for an hour.</p>}
    </>
  );
}
