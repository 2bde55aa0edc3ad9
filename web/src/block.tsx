// Commands as blocks: who ran each, when, how it ended; folded or with its output, with a link, and keys that go from one to the next.
import { signal, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { IDecoration, Terminal } from "@xterm/xterm";
import "./block.css";
import { getCommandOutput, getScreen, listCommands, type CommandInfo } from "./api";
import { copyText } from "./clipboard";
import { attempt, block, choose, commandHearers, entries, inspector, listed, narrow, selected, tell, tickOf } from "./store";
import { enter, loadTerminal } from "./terminal";
import { scrollTo } from "./viewer";

/** Rows that are drawn at once: thousands would hold the page up. */
const ROWS = 100;

interface Known {
  list: Signal<CommandInfo[] | null>;
  /** How many parts of the page show it. */
  users: number;
  /** For which news it was asked last, and whether an answer is on its way. */
  tick: number;
  busy: boolean;
}
const known = new Map<string, Known>();

/** One request is under way at a time: of many that end meanwhile the next one tells. */
async function refresh(name: string, about: Known): Promise<void> {
  if (about.busy) return;
  about.busy = true;
  while (about.users > 0 && about.tick !== tickOf(name).peek()) {
    about.tick = tickOf(name).peek();
    const list = await listCommands(name).catch(() => null);
    if (list !== null) about.list.value = list; // else what is known stays; the server's next news ask again
  }
  about.busy = false;
}

/** The commands of a session, asked for once for all that show them. */
export function useCommands(name: string): CommandInfo[] | null {
  const about = known.get(name) ?? { list: signal(null), users: 0, tick: -1, busy: false };
  known.set(name, about);
  const tick = tickOf(name).value;
  useEffect(() => {
    about.users++;
    commandHearers.set(name, (command) => {
      const list = about.list.peek();
      if (about.busy || list === null) return false;
      about.list.value = list.some((one) => one.id === command.id) ? list.map((one) => (one.id === command.id ? command : one)) : [...list, command];
      return true;
    });
    return () => {
      if (--about.users > 0 || known.get(name) !== about) return;
      known.delete(name);
      commandHearers.delete(name);
    };
  }, [about]);
  useEffect(() => void refresh(name, about), [about, tick]);
  return about.list.value;
}

export function Timeline(props: { name: string }) {
  const commands = useCommands(props.name);
  const [range, setRange] = useState({ from: 0, count: ROWS });
  const newest = useMemo(() => [...(commands ?? [])].reverse(), [commands]);
  const at = block.value?.session === props.name ? newest.findIndex((one) => one.id === block.value?.id) : -1;
  // The one that was jumped to is among those that are drawn.
  useLayoutEffect(() => {
    if (at >= 0) setRange((old) => (at >= old.from && at < old.from + old.count ? old : { from: Math.max(0, at - ROWS / 2), count: ROWS }));
  }, [block.value, at < 0]);
  if (commands === null) return <p class="soft pad">Loading…</p>;
  if (commands.length === 0) {
    return <p class="soft pad">No commands known. They appear for bash, zsh and fish that wsh started.</p>;
  }
  const { from, count } = range;
  const earlier = newest.length - from - count;
  return (
    <ol class="timeline">
      {from > 0 && (
        <li>
          <button class="more" onClick={() => setRange({ from: Math.max(0, from - ROWS), count: Math.min(ROWS, from) + count })}>
            Later commands
          </button>
        </li>
      )}
      {newest.slice(from, from + count).map((command) => (
        <Item key={command.id} name={props.name} command={command} />
      ))}
      {earlier > 0 && (
        <li>
          <button class="more" onClick={() => setRange({ from, count: count + ROWS })}>
            {earlier === 1 ? "1 earlier command" : `${earlier.toLocaleString("en")} earlier commands`}
          </button>
        </li>
      )}
    </ol>
  );
}

export const isRunning = (command: CommandInfo): boolean => command.exit_code === null && command.duration_ms === null;

function Item(props: { name: string; command: CommandInfo }) {
  const [output, setOutput] = useState<string | null>(null);
  const details = useRef<HTMLDetailsElement>(null);
  const { command, name } = props;
  const running = isRunning(command);
  const at = block.value?.session === name && block.value.id === command.id;
  useLayoutEffect(() => {
    if (at) details.current?.scrollIntoView({ block: "nearest" });
  }, [at]);
  // What it has printed since is asked for again when it has ended.
  useEffect(() => {
    if (!running && details.current?.open) void load();
  }, [running]);
  const load = async (): Promise<void> => {
    const text = await readOutput(name, command.id);
    if (text !== undefined) setOutput(text);
  };
  return (
    <li class={`${running ? "running" : command.exit_code === 0 ? "good" : "bad"}${at ? " at" : ""}`} aria-current={at ? "true" : undefined}>
      <details ref={details} onToggle={(event) => event.currentTarget.open && output === null && void load()}>
        <summary>
          <span class="code" title={running ? "runs" : `exit ${command.exit_code ?? "unknown"}`}>
            {running ? "…" : (command.exit_code ?? "?")}
          </span>
          <code>
            <bdi>{command.command}</bdi>
          </code>
          <span class="soft time">{duration(command.duration_ms)}</span>
          <small class="soft by">
            <bdi>{author(command)}</bdi>
            {command.started !== null && <time title={new Date(command.started * 1000).toLocaleString()}>{moment(command.started)}</time>}
          </small>
        </summary>
        <div class="actions">
          <button onClick={() => void jump(name, command)}>Show in terminal</button>
          <button onClick={() => void copyOutput(name, command.id)}>Copy output</button>
          <button onClick={() => enter(name, command.command)}>Run again</button>
          <button onClick={() => void copyLink(name, command.id)}>Copy link</button>
        </div>
        {output === "" ? (
          <p class="soft pad">{running ? "Nothing printed yet." : "It printed nothing."}</p>
        ) : (
          <pre class="output" tabIndex={0}>
            {output ?? "Loading…"}
          </pre>
        )}
      </details>
    </li>
  );
}

function author(command: CommandInfo): string {
  if (command.author === null) return "author unknown";
  const { kind, id } = command.author;
  return kind === "agent" ? `agent ${id.replace(/^agent:/, "")}` : kind === "server" ? "the server" : "you";
}

function moment(seconds: number): string {
  const when = new Date(seconds * 1000);
  const today = when.toDateString() === new Date().toDateString();
  return today ? when.toLocaleTimeString() : when.toLocaleString();
}

export function duration(ms: number | null): string {
  if (ms === null) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  return s < 60 ? `${s.toFixed(1)} s` : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

/** How it went, in a few words. */
export function about(command: CommandInfo): string {
  const ended = isRunning(command) ? "runs" : `exit ${command.exit_code ?? "unknown"}`;
  return [ended, duration(command.duration_ms), author(command), command.started === null ? "" : moment(command.started)].filter(Boolean).join(" · ");
}

const readOutput = (name: string, id: number): Promise<string | undefined> =>
  attempt(async () => (await getCommandOutput(name, String(id), { format: "plain" })).lines.join("\n"));

export async function copyOutput(name: string, id: number): Promise<void> {
  const text = await readOutput(name, id);
  if (text === undefined) return;
  if (await copyText(text)) tell("Output copied.");
  else tell("The browser did not let the clipboard be written.", undefined, true);
}

export async function copyLink(name: string, id: number): Promise<void> {
  const words = new URLSearchParams({ session: name, command: String(id) });
  const link = `${location.origin}${location.pathname}#${words.toString()}`;
  if (await copyText(link)) tell("Link copied.", "It opens this session at this command, in a browser that is signed in.");
  else tell(link, "The browser did not let the clipboard be written.", true);
}

let mark: IDecoration | undefined;

/** Show where a command stands in its terminal; it is marked until another one is, or somebody types. */
async function jump(name: string, command: CommandInfo): Promise<void> {
  mark?.dispose();
  block.value = { session: name, id: command.id };
  for (const whole of [false, true]) {
    const found = await locate(name, command.first_line, whole);
    if (!found) return;
    const { terminal, row } = found;
    if (terminal.buffer.active.type === "alternate") {
      tell("A full-screen program is in front.", "The command is marked in the list, and in the terminal when the program ends.");
      return;
    }
    if (row <= 0 && !whole) continue;
    const all = known.get(name)?.list.peek() ?? [];
    const line = commandRow(terminal, command, all, row) ?? nearestRow(terminal, command, all, row);
    if (line !== null) return scrollTo(terminal, line - 1);
  }
  tell("The session no longer keeps the lines of that command.", "Its output is kept in the list of commands.");
}

/** Show a line of the session by its number, marked. */
export async function showLine(name: string, number: number): Promise<void> {
  let found = await locate(name, number, false);
  if (found && found.row <= 0) found = await locate(name, number, true);
  if (!found) return;
  if (found.row < 0) tell("The session no longer keeps that line.");
  else point(found.terminal, found.row);
}

/** The row of the emulator for a line of the session, with all earlier lines fetched if asked for; below 0 where it is not among them. */
async function locate(name: string, number: number, all: boolean): Promise<{ terminal: Terminal; row: number } | null> {
  const terminal = await loadTerminal(name, all);
  const screen = await attempt(() => getScreen(name, { format: "plain" }));
  if (!terminal || !screen) return null;
  // Rows of the session and of the emulator are counted alike from the screen's top.
  return { terminal, row: terminal.buffer.active.baseY + number - screen.first_line_index };
}

/** Bring a row into sight and mark it until the next one is. */
function point(terminal: Terminal, line: number): void {
  scrollTo(terminal, line - 1);
  mark?.dispose();
  const buffer = terminal.buffer.active;
  const marker = terminal.registerMarker(line - buffer.baseY - buffer.cursorY);
  mark = marker ? terminal.registerDecoration({ marker, width: terminal.cols, layer: "bottom" }) : undefined;
  mark?.onRender((element) => element.classList.add("block-mark"));
}

/** The line that begins in a row, over all rows that it takes; null where it is too long to be a prompt and `words`. */
function lineFrom(terminal: Terminal, row: number, words: string): string | null {
  const buffer = terminal.buffer.active;
  let text = "";
  for (let at = row; ; at++) {
    const goesOn = buffer.getLine(at + 1)?.isWrapped === true;
    text += buffer.getLine(at)?.translateToString(!goesOn) ?? "";
    if (text.length > words.length + LONGEST_PROMPT) return null;
    if (!goesOn) return text.trimEnd();
  }
}

/** Whether words stand at the end of a line and do not begin within another word. */
function endsWith(line: string, words: string): boolean {
  return line.endsWith(words) && !WITHIN_WORD.test(line.slice(0, line.length - words.length));
}

/** Whether a command was typed in a row: a prompt, its words, and nothing else but what a shell keeps at the right edge. */
function holds(terminal: Terminal, row: number, words: string): boolean {
  const line = lineFrom(terminal, row, words);
  if (line === null || !line.includes(words)) return false;
  if (endsWith(line, words)) return true;
  const left = line.length >= terminal.cols - RIGHT_GAP ? line.replace(RIGHT_PROMPT, "") : line;
  return left !== line && endsWith(left, words);
}

/** Whether the first of several lines that a shell tells as one command was typed in a row: the row ends with a beginning of the command. */
function begins(terminal: Terminal, row: number, command: CommandInfo): boolean {
  const [words, short] = [firstWords(command), shortWords(command)];
  const line = lineFrom(terminal, row, words);
  const at = line === null || !short ? -1 : line.lastIndexOf(short);
  if (line === null || at < 0) return false;
  const typed = line.slice(at);
  return typed !== words && words.startsWith(typed) && endsWith(line, typed);
}

const firstWords = (command: CommandInfo): string => command.command.trim().split("\n")[0]?.trimEnd() ?? "";
const shortWords = (command: CommandInfo): string => firstWords(command).split(";")[0] ?? "";

/** Whether a command stands in a row still. */
export const standsIn = (terminal: Terminal, row: number, command: CommandInfo): boolean =>
  holds(terminal, row, firstWords(command)) || begins(terminal, row, command);

const LONGEST_PROMPT = 500;
/** A text whose next character would go on with its last word. */
const WITHIN_WORD = /[\p{L}\p{N}_./-]$/u;
/** What a shell shows at the right of the line that is typed, so many columns from the edge at most. */
const RIGHT_PROMPT = / {2,}\S+(?: \S+)*$/;
const RIGHT_GAP = 2;
/** A line that is typed takes at most so many rows. */
const TYPED_ROWS = 12;
/** So far above the next command one is looked for whose lines were numbered anew; more where it printed more. */
const FAR_ROWS = 60;

/** The row of the emulator that a command was typed in, above `below`. Its output began at `output`, unless lines were numbered anew since. */
export function commandRow(terminal: Terminal, command: CommandInfo, all: CommandInfo[], output: number | null, below?: number): number | null {
  const words = firstWords(command);
  if (!words) return null;
  const end = below ?? terminal.buffer.active.length;
  const rows = output === null ? [] : [1, 0, ...Array.from({ length: TYPED_ROWS }, (_, index) => index + 2)].map((back) => output - back);
  const near = rows.filter((row) => row >= 0 && row < end);
  const typed = near.find((row) => isOf(terminal, row, words, all)) ?? near.find((row) => begins(terminal, row, command));
  if (typed !== undefined) return typed;
  if (below === undefined) return null;
  const far = FAR_ROWS + 2 * Math.max(0, (command.last_line ?? command.first_line) - command.first_line);
  for (let row = below - 1; row >= Math.max(0, below - far); row--) if (isOf(terminal, row, words, all)) return row;
  return null;
}

/** Whether the command with these words was typed in a row, and not another one of `all` that ends with the same words. */
function isOf(terminal: Terminal, row: number, words: string, all: CommandInfo[]): boolean {
  if (!holds(terminal, row, words)) return false;
  return !all.some((one) => {
    const other = firstWords(one);
    return other.length > words.length && other.endsWith(words) && holds(terminal, row, other);
  });
}

/** The nearest row that a command was typed in, behind a prompt: without one it may be what a program printed. */
function nearestRow(terminal: Terminal, command: CommandInfo, all: CommandInfo[], to: number): number | null {
  const words = firstWords(command);
  const buffer = terminal.buffer.active;
  const fits = (row: number): boolean => {
    const line = buffer.getLine(row);
    return line !== undefined && !line.isWrapped && isOf(terminal, row, words, all) && !line.translateToString(true).startsWith(words.slice(0, terminal.cols));
  };
  for (let off = 0; words && off < buffer.length + Math.abs(to); off++) for (const row of [to - off, to + off]) if (fits(row)) return row;
  return null;
}

async function findBlock(): Promise<{ name: string; list: CommandInfo[]; at: number } | null> {
  const name = selected.value;
  if (name === null) return null;
  const list = await attempt(() => listCommands(name));
  if (!list) return null;
  if (list.length === 0) {
    tell("No commands are known here.", "They appear for bash, zsh and fish that wsh started.");
    return null;
  }
  const known = block.value?.session === name ? list.findIndex((one) => one.id === block.value?.id) : -1;
  return { name, list, at: known };
}

/** To the command before or after the one that was jumped to; at first to the newest. */
export async function stepBlock(by: number): Promise<void> {
  const found = await findBlock();
  if (!found) return;
  const { name, list, at } = found;
  const next = list[at < 0 ? list.length - 1 : Math.max(0, Math.min(list.length - 1, at + by))];
  if (next) await jump(name, next);
}

async function withBlock(work: (name: string, command: CommandInfo) => void): Promise<void> {
  const found = await findBlock();
  const command = found?.list[found.at < 0 ? found.list.length - 1 : found.at];
  if (found && command) work(found.name, command);
}

export const copyBlock = (): Promise<void> => withBlock((name, command) => void copyOutput(name, command.id));
export const runBlock = (): Promise<void> => withBlock((name, command) => enter(name, command.command));
export const linkBlock = (): Promise<void> => withBlock((name, command) => void copyLink(name, command.id));

/** Go where a link points: `#session=NAME&command=ID`. */
export function followLinks(): void {
  const words = new URLSearchParams(location.hash.slice(1));
  const session = words.get("session");
  if (session === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  const id = Number(words.get("command"));
  const stop = listed.subscribe((known) => {
    if (!known) return;
    queueMicrotask(() => stop());
    if (!entries.peek().has(session)) {
      tell(`There is no session ${session} any more.`, undefined, true);
      return;
    }
    choose(session);
    if (id) {
      if (!narrow.peek()) inspector.value = "commands";
      void show(session, id);
    }
  });
}

async function show(name: string, id: number): Promise<void> {
  const command = (await attempt(() => listCommands(name)))?.find((one) => one.id === id);
  if (!command) {
    tell(`Command ${id} of ${name} is not known any more.`, "Old commands are forgotten; the search may still have its lines.", true);
    return;
  }
  await jump(name, command);
  document.querySelector<HTMLDetailsElement>(".timeline li.at details")?.setAttribute("open", "");
}
