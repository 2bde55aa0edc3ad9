// What the page knows: one place, kept fresh by one WebSocket; components read signals and call actions.
import { computed, signal, type Signal } from "@preact/signals";
import * as api from "./api";
import { ApiError, type CommandInfo, type HostInfo, type SessionInfo, type StateAnswer } from "./api";
import { Channel } from "./channel";
import { moveOutbox } from "./outbox";

export type View = "single" | "grid" | "queue" | "search" | "admin" | "replay";
export type Connection = "connecting" | "connected" | "lost" | "signed-out";
export type Visible = "running" | "idle" | "open" | "waiting" | "hidden" | "attention" | "exited" | "failed" | "away";

export interface Entry {
  info: SessionInfo;
  state: StateAnswer | null;
  /** When it last printed, by this page's clock. */
  active: number;
  /** It went quiet while nobody looked at it. */
  attention: boolean;
}

export const entries = signal<ReadonlyMap<string, Entry>>(new Map());
/** Other machines, those out of reach included. */
export const hosts = signal<readonly HostInfo[]>([]);
export const selected = signal<string | null>(null);
export const view = signal<View>("single");
export const filter = signal("");
export const connection = signal<Connection>("connecting");
export const inspector = signal<"commands" | "details" | "approvals" | null>(window.innerWidth > 1200 ? "commands" : null);
/** A phone, held either way: there is room for one thing at a time. */
const phone = window.matchMedia("(max-width: 720px), (pointer: coarse) and (max-width: 960px) and (max-height: 600px)");
export const narrow = signal(phone.matches);
phone.addEventListener("change", () => (narrow.value = phone.matches));
/** Whether the notice that the server is away was dismissed. */
export const awayHeeded = signal(false);
export const paletteOpen = signal(false);
export const sidebarOpen = signal(false);
export const creating = signal(false);
/** What was asked for when a session could not be made: the dialog comes back with it. */
export const draft = signal<{ wanted: Record<string, unknown>; why?: Reason } | null>(null);
/** A session is being opened here: "" until its name is known, then its name until its terminal takes the keys. */
export const opening = signal<string | null>(null);
export const finding = signal(false);
export const sheetOpen = signal(false);
/** Whether the sessions are known; before that one may be about to appear. */
export const listed = signal(false);
export const USUAL_LEADER = "Ctrl+\\";
/** The key that the page's own keys stand behind. */
export const leader = signal(localStorage.getItem("wsh.leader") || USUAL_LEADER);
/** Counts how often somebody asked for the search. */
export const searchTick = signal(0);
/** Whether an agent has captured the keys of the session in front. */
export const captured = signal(false);
/** What has room where a session is shown: a new one opened here begins with that. */
export const room = signal<{ rows: number; cols: number } | null>(null);
/** The old and the new name of a session. */
export const renamed = signal<readonly [string, string] | null>(null);
export const toasts = signal<readonly Toast[]>([]);
const ticks = new Map<string, Signal<number>>();
/** Counts what was heard of the commands of a session. */
export function tickOf(name: string): Signal<number> {
  const found = ticks.get(name) ?? signal(0);
  ticks.set(name, found);
  return found;
}
/** Who takes what is told of a command, where the others are known; false where all are to be asked for. */
export const commandHearers = new Map<string, (command: CommandInfo) => boolean>();
/** The command that keys act on: the one that was chosen last. */
export const block = signal<{ session: string; id: number } | null>(null);

export interface Toast {
  id: number;
  text: string;
  hint?: string;
  bad: boolean;
  /** What a click does beside dismissing it. */
  act?: () => void;
}

export const shown = computed(() => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  return [...entries.value.values()].filter((entry) => {
    const text = [entry.info.name, entry.info.command, entry.info.title, ...entry.info.tags].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
});

export const current = computed(() => (selected.value === null ? undefined : entries.value.get(selected.value)));

export function visible(entry: Entry): Visible {
  if (entry.info.unreachable_since != null) return "away";
  if (!entry.info.running) return entry.info.exit_code === 0 ? "exited" : "failed";
  const word = entry.state?.state ?? entry.info.state;
  if (word === "asks") return "waiting";
  if (word === "hidden" || word === "idle" || word === "open") return word;
  return entry.attention ? "attention" : "running";
}

/** What a dialog does when it is closed: at once by Escape. Of the rest it tells late: by then it may be gone, and another one be open. */
export function whenClosed(then: () => void): { onCancel: () => void; onClose: (event: { currentTarget: Element }) => void } {
  return {
    onCancel: then,
    onClose: (event) => {
      if (event.currentTarget.isConnected) then();
    },
  };
}

let toastId = 0;
export function tell(text: string, hint?: string, bad = false, act?: () => void): void {
  const toast = { id: ++toastId, text, hint, bad, act };
  toasts.value = [...toasts.value.slice(-3), toast];
  setTimeout(() => dismiss(toast.id), bad ? 9000 : 4000);
}
export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Why something failed, in words. */
export interface Reason {
  text: string;
  hint?: string;
  code?: string;
}
const tellReason = ({ text, hint }: Reason): void => tell(text, hint, true);

/** Run an action; what goes wrong is told, never swallowed. */
export async function attempt<T>(work: () => Promise<T>, onFailure: (reason: Reason) => void = tellReason): Promise<T | undefined> {
  try {
    return await work();
  } catch (problem) {
    if (problem instanceof ApiError && (problem.status === 401 || (problem.status === 403 && problem.code.startsWith("auth")))) {
      connection.value = "signed-out";
    } else if (problem instanceof ApiError) {
      onFailure({ text: problem.message, hint: problem.hint, code: problem.code });
    } else {
      onFailure({ text: String(problem) });
    }
    return undefined;
  }
}

function change(name: string, update: (entry: Entry) => Entry | undefined): void {
  const entry = entries.value.get(name);
  if (!entry) return;
  const next = new Map(entries.value);
  const changed = update(entry);
  if (changed) next.set(changed.info.name, changed);
  else next.delete(name);
  entries.value = next;
}

function put(info: SessionInfo): void {
  const next = new Map(entries.value);
  const old = next.get(info.name);
  next.set(info.name, {
    info,
    state: old?.state ?? null,
    active: old?.active ?? performance.now() - info.last_activity_ms,
    attention: old?.attention ?? false,
  });
  entries.value = next;
}

export const channel = new Channel("/ws/json");

/** What makes a list old that was asked for before: sessions that came, went, ended, or have other names or tags. */
const LIST_NEWS = ["session_created", "session_renamed", "session_destroyed", "session_tags_changed", "exit"];
/** Counts these. */
let changes = 0;

async function reload(): Promise<void> {
  const before = changes;
  const list = await attempt(() => api.listSessions());
  if (!list) return;
  if (before !== changes) return reload();
  const next = new Map<string, Entry>();
  for (const info of list) {
    const old = entries.value.get(info.name);
    next.set(info.name, {
      info,
      state: old?.state ?? null,
      active: performance.now() - info.last_activity_ms,
      attention: old?.attention ?? false,
    });
  }
  for (const name of entries.value.keys()) if (!next.has(name)) moveOutbox(name, null);
  entries.value = next;
  listed.value = true;
  if (selected.value === null || !next.has(selected.value)) selected.value = list[0]?.name ?? null;
  for (const info of list) {
    follow(info.name);
    void lookAt(info.name);
  }
}

async function reloadHosts(): Promise<void> {
  hosts.value = (await attempt(() => api.listHosts()))?.hosts ?? [];
}

function follow(name: string): void {
  void channel
    .request("subscribe", { events: ["activity", "exit", "mode", "commands"], idle_timeout_ms: 1500, interval_ms: 500 }, name)
    .catch(() => undefined);
}

/** A session that has printed nothing for so long while nobody looked went quiet; a pause between two lines is none. */
const QUIET_MS = 15_000;
const quieting = new Map<string, number>();

function stirs(name: string): void {
  clearTimeout(quieting.get(name));
  quieting.delete(name);
}

function rests(name: string): void {
  stirs(name);
  const later = (): void => change(name, (entry) => ({ ...entry, attention: looked(name) ? false : entry.info.running }));
  quieting.set(name, window.setTimeout(later, QUIET_MS));
}

/** Sessions whose state is being asked for, and whether it is to be asked for once more. */
const looks = new Map<string, { again: boolean }>();

/** What its program waits for, from the kernel; asked when it falls silent or goes on, never in a loop. One question at a time, so that the newest answer is the last. */
export async function lookAt(name: string): Promise<void> {
  const under = looks.get(name);
  if (under) {
    under.again = true;
    return;
  }
  const look = { again: true };
  looks.set(name, look);
  while (look.again) {
    look.again = false;
    const state = await api.getState(name).catch(() => null);
    change(name, (entry) => ({ ...entry, state }));
  }
  looks.delete(name);
}

/** Keys that were typed here were written: who typed last is asked anew where it was somebody else. */
export function noteTyped(name: string): void {
  const last = entries.value.get(name)?.state?.last_input;
  if (last && last.by !== "person") void lookAt(name);
}

function setWord(name: string, word: StateAnswer["state"]): void {
  change(name, (entry) => ({ ...entry, info: { ...entry.info, state: word }, state: entry.state && { ...entry.state, state: word } }));
}

/** What the screen of a session lacks, as soon as that is known. */
export function setNotice(name: string, notice: string | null): void {
  change(name, (entry) => ({ ...entry, info: { ...entry.info, notice } }));
}

async function refresh(name: string): Promise<void> {
  const before = entries.value.get(name)?.info;
  try {
    const info = await api.getSession(name);
    if (entries.value.get(name)?.info !== before) return refresh(name); // it has ended meanwhile, or something else was told of it
    if (entries.value.has(name)) put(info); // not one that was renamed or removed meanwhile
  } catch {
    // gone meanwhile; its end is told by an event of its own
  }
}

export function start(): void {
  channel.onOpen = () => {
    connection.value = "connected";
    void reload();
    void reloadHosts();
  };
  channel.onLost = (refused) => {
    connection.value = refused ? "signed-out" : "lost";
  };
  channel.onEvent = (event) => {
    const name = String(event.session ?? event.name ?? "");
    if (LIST_NEWS.includes(event.event)) changes++;
    switch (event.event) {
      case "session_created":
        put(event.info as SessionInfo);
        follow(name);
        if (selected.value === null) selected.value = name;
        void lookAt(name);
        break;
      case "session_renamed": {
        const [old, now] = [String(event.old_name), String(event.new_name)];
        // In its place: the order of the list stays that of creation.
        entries.value = new Map([...entries.value].map(([name, entry]) => (name === old ? [now, { ...entry, info: { ...entry.info, name: now } }] : [name, entry])));
        moveOutbox(old, now);
        renamed.value = [old, now];
        if (selected.value === old) selected.value = now;
        void refresh(now);
        follow(now);
        break;
      }
      case "session_destroyed":
        stirs(name);
        moveOutbox(name, null);
        change(name, () => undefined);
        if (selected.value === name) selected.value = entries.value.keys().next().value ?? null;
        break;
      case "host_added":
      case "host_removed":
      case "host_changed":
        void reload();
        void reloadHosts();
        break;
      case "session_tags_changed":
        change(name, (entry) => ({ ...entry, info: { ...entry.info, tags: event.tags as string[] } }));
        break;
      case "running":
        stirs(name);
        change(name, (entry) => ({ ...entry, active: performance.now(), attention: false }));
        // It may have been answered.
        if (["asks", "hidden"].includes(entries.value.get(name)?.state?.state ?? "")) void lookAt(name);
        break;
      case "idle":
        rests(name);
        void lookAt(name);
        void refresh(name);
        if (name.includes("/")) tickOf(name).value++; // of another machine less is told
        break;
      case "sync": // something may have been missed
        tickOf(name).value++;
        break;
      case "command_finished":
      case "command_started":
        // Known at once, also of a command that is never silent.
        setWord(name, event.event === "command_started" ? "running" : "idle");
        if (typeof event.command !== "object" || !commandHearers.get(name)?.(event.command as CommandInfo)) tickOf(name).value++;
        break;
      case "exit":
        stirs(name);
        change(name, (entry) => ({
          ...entry,
          info: { ...entry.info, running: false, exit_code: event.exit_code as number },
          attention: !looked(name),
        }));
        break;
    }
  };
  channel.open();
}

/** Whether the person has this session before them. */
export const looked = (name: string): boolean => name === selected.value && view.value === "single" && document.hasFocus();

export function choose(name: string, how: View = "single"): void {
  selected.value = name;
  view.value = how;
  sidebarOpen.value = false;
  change(name, (entry) => ({ ...entry, attention: false }));
}

// actions

/** Sessions that were opened here without a size of their own: each takes the size of the part that it comes into. */
export const fresh = new Set<string>();

/** Make a session and show it. Keys wait for it from now on; whether it was made. */
export async function create(wanted: Record<string, unknown>, onFailure?: (reason: Reason) => void): Promise<boolean> {
  opening.value = "";
  const made = await attempt(() => api.createSession({ ...room.value, ...wanted }), onFailure);
  if (made) {
    if (wanted.rows === undefined && wanted.cols === undefined) fresh.add(made.name);
    put(made);
    choose(made.name);
  }
  opening.value = made?.name ?? null;
  return made !== undefined;
}

/** What a person is asked before something is done: for a line of text, or only whether to do it. */
export interface Question {
  title: string;
  /** What is meant by the line. */
  label?: string;
  text?: string;
  says?: string;
  /** What the button does. */
  does: string;
  grave?: boolean;
  then: (text: string) => void;
}
export const question = signal<Question | null>(null);

/** End a session, after asking; one that has ended is only taken away. */
export function askKill(name: string): void {
  if (entries.value.get(name)?.info.running === false) void kill(name);
  else question.value = { title: `Kill ${name}?`, says: "Everything that it started ends, too.", does: "Kill", grave: true, then: () => void kill(name) };
}

export function askName(name: string): void {
  question.value = { title: `Rename ${name}`, label: "New name", text: name, does: "Rename", then: (to) => to && to !== name && void rename(name, to) };
}

export function askTags(name: string): void {
  const tags = entries.value.get(name)?.info.tags ?? [];
  const then = (words: string): void => {
    const wanted = words.split(/[\s,]+/).filter(Boolean);
    void retag(name, wanted.filter((t) => !tags.includes(t)), tags.filter((t) => !wanted.includes(t)));
  };
  question.value = { title: `Tags of ${name}`, label: "Tags, separated by blanks", text: tags.join(" "), does: "Keep", then };
}
const rename = (name: string, to: string): Promise<unknown> =>
  attempt(() => api.updateSession(name, { name: to }));
const retag = (name: string, add: string[], remove: string[]): Promise<unknown> =>
  attempt(() => api.updateSession(name, { add_tags: add, remove_tags: remove }));
const kill = (name: string): Promise<unknown> => attempt(() => api.killSession(name));
export const detach = (name: string): Promise<unknown> => attempt(() => api.detachSession(name));
export const takeOver = (name: string): Promise<unknown> =>
  attempt(async () => {
    await api.takeOver(name);
    await lookAt(name);
  });
export const handBack = (name: string): Promise<unknown> =>
  attempt(async () => {
    await api.handBack(name);
    await lookAt(name);
  });
