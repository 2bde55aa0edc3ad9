// A session in an emulator: pictures come from the server composed, keys go back as they are.
import { UnicodeGraphemesAddon } from "@xterm/addon-unicode-graphemes";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import { effect, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { copyOnSelect, copyText, hearWish } from "./clipboard";
import { Frame, shrink } from "./frame";
import { harmless } from "./paste";
import { held as picked, letGo } from "./pick";
import { Finger } from "./touch";
import { block, connection, fresh, leader, narrow, opening, question, renamed, selected, tell, toasts, view } from "./store";
import { fontSize, terminalFont, terminalTheme, themeTick } from "./theme";
import { KEPT_LINES, NOTHING, noteScroll, scrollTo, syncScrollbar, Viewer, type Place, type Remote } from "./viewer";

export type { Remote } from "./viewer";

const ASK_FIRST_BYTES = 256 * 1024;
export const emulators = new Map<string, Terminal>();

/** What the terminal in front shows, as text: for tests and for assistive scripts. */
export function shownText(name: string): string {
  const buffer = emulators.get(name)?.buffer.active;
  if (!buffer) return "";
  const lines: string[] = [];
  for (let line = 0; line < buffer.length; line++) lines.push(buffer.getLine(line)?.translateToString(true) ?? "");
  return lines.join("\n");
}

export function shownSize(name: string): { rows: number; cols: number } | null {
  const terminal = emulators.get(name);
  return terminal ? { rows: terminal.rows, cols: terminal.cols } : null;
}

const typers = new Map<string, (data: string) => void>();
const runners = new Map<string, (command: string) => void>();
const pasters = new Map<string, (text: string) => void>();
/** Paste a text as if it came by the keyboard's own key. */
export const pasteText = (name: string, text: string): void => pasters.get(name)?.(text);
/** Modifiers that are down for the next key. */
export const held = signal({ ctrl: false, alt: false });

/** `data` as if the modifiers that are held had been pressed with it. */
export function modified(data: string): string {
  const { ctrl, alt } = held.peek();
  if (!ctrl && !alt) return data;
  held.value = { ctrl: false, alt: false };
  let key = data;
  const code = data.toUpperCase().charCodeAt(0);
  if (ctrl && data.length === 1) {
    if (code >= 64 && code <= 95) key = String.fromCharCode(code & 31);
    else if (data === " ") key = "\0";
    else if (data === "/") key = "\x1f";
  }
  return alt ? `\x1b${key}` : key;
}

/** Keys that were pressed while no terminal was there to take them, in order. */
const early: string[] = [];
const EARLY_KEYS = 4096;

/** Hand over what waited, unless it waits for another session. */
function deliver(name: string, terminal: Terminal): void {
  const awaited = opening.peek();
  if (awaited !== null && awaited !== name) return;
  for (const data of early.splice(0)) terminal.input(data, true);
  opening.value = null;
}

let awaits = false;
effect(() => {
  const name = opening.value;
  const chosen = selected.value === name && view.value === "single";
  // No session came of it: the keys were meant for no other.
  if (name === null && awaits) early.length = 0;
  awaits = name !== null;
  if (!name) return;
  const terminal = emulators.get(name);
  if (!chosen) opening.value = null;
  else if (terminal) {
    terminal.focus();
    deliver(name, terminal);
  }
});

const NAMED: Record<string, string> = { Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b" };

/** What a terminal would be sent for a key; null for one that means nothing there. */
function bytesOf(event: KeyboardEvent): string | null {
  if (event.metaKey || event.isComposing) return null;
  const arrow = ARROWS[event.key];
  const plain = arrow ? `\x1b[${arrow}` : (NAMED[event.key] ?? (event.key.length === 1 ? event.key : null));
  if (plain === null) return null;
  if (event.ctrlKey) {
    const code = event.key.toUpperCase().charCodeAt(0);
    return event.key.length === 1 && code >= 64 && code <= 95 ? String.fromCharCode(code & 31) : null;
  }
  return event.altKey ? `\x1b${plain}` : plain;
}

/** A key that nothing on the page has the focus for goes to the terminal in front, or waits for it. */
export function takeStrayKey(event: KeyboardEvent, name: string | null): boolean {
  const data = bytesOf(event);
  if (data === null) return false;
  const terminal = name === null || opening.peek() !== null ? undefined : emulators.get(name);
  if (terminal) {
    terminal.focus();
    terminal.input(data, true);
  } else if (early.length < EARLY_KEYS) early.push(data);
  return true;
}

let settling: (() => void) | null = null;

/** Let the keyboard go elsewhere as soon as what happens now is over; a key that comes before that finds it there. */
export function settleFocusSoon(move: () => void): void {
  settling = move;
  setTimeout(settleFocus);
}

/** Whether the keyboard was about to go elsewhere. */
export function settleFocus(): boolean {
  const before = document.activeElement;
  settling?.();
  settling = null;
  return document.activeElement !== before;
}

const ARROWS: Record<string, string> = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D" };

/** Press a key that the device's own keyboard lacks. */
export function typeKey(name: string, key: string, focus = true): void {
  const terminal = emulators.get(name);
  const type = typers.get(name);
  if (!terminal || !type) return;
  const arrow = ARROWS[key];
  if (arrow) {
    const { ctrl, alt } = held.peek();
    held.value = { ctrl: false, alt: false };
    const shift = 1 + (alt ? 2 : 0) + (ctrl ? 4 : 0);
    const plain = terminal.modes.applicationCursorKeysMode ? "\x1bO" : "\x1b[";
    type(shift > 1 ? `\x1b[1;${shift}${arrow}` : plain + arrow);
  } else type(modified(key === "Escape" ? "\x1b" : key === "Tab" ? "\t" : key));
  if (focus) terminal.focus();
}

/** Send a whole text, such as a line that was composed elsewhere. */
export function typeText(name: string, text: string): void {
  typers.get(name)?.(text);
}

/** What is in sight, without blanks at the ends of lines. */
export function visibleText(name: string): string {
  const terminal = emulators.get(name);
  const buffer = terminal?.buffer.active;
  if (!terminal || !buffer) return "";
  const lines = Array.from({ length: terminal.rows }, (_, row) => buffer.getLine(buffer.viewportY + row)?.translateToString(true) ?? "");
  return lines.join("\n").trimEnd();
}

/** Put the keyboard into that terminal, if it is on the page. */
export function focusTerminal(name: string): void {
  emulators.get(name)?.focus();
}

/** Send the program what a key of the page would have been. */
export function typeLiterally(name: string, keys: string): void {
  const key = keys.split("+").pop() ?? "";
  const data = keys.startsWith("Ctrl+") && key.length === 1 ? String.fromCharCode(key.toUpperCase().charCodeAt(0) & 31) : key;
  typers.get(name)?.(data);
}

/** Run a command where the line is empty; the server says so if it is not. Not by a request that waits for its end: browsers
 * repeat one that is answered with 408. */
export function enter(name: string, command: string): void {
  runners.get(name)?.(command);
  emulators.get(name)?.focus();
}

const viewers = new Map<string, Viewer>();
/** Where somebody read earlier lines of a session when they went elsewhere. */
const reading = new Map<string, Place>();
const WAIT_MS = 50;
const MOST_WAITS = 200;

/** Whether there were lines before the first one that can be shown. */
export const beginsLater = (name: string): boolean => viewers.get(name)?.beginsLater === true;

/** The terminal when it has its picture with no lines missing in between and, if asked for, all earlier lines; null if it does not come. */
export async function loadTerminal(name: string, all: boolean): Promise<Terminal | null> {
  for (let turn = 0; !viewers.get(name)?.drawn; turn++) {
    if (turn > MOST_WAITS) return null;
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
  }
  await viewers.get(name)?.load(all);
  return emulators.get(name) ?? null;
}

const frames = new Map<string, Frame>();

/** What of a session is in sight: by the numbers that its lines have at the server, and by the emulator's rows. */
export interface Sight {
  terminal: Terminal;
  epoch: number | undefined;
  /** The line at the top. */
  top: number;
  /** Of a row, in pixels. */
  height: number;
  rowOf: (line: number) => number | null;
  lineOf: (row: number) => number | null;
}

/** Tell what is in sight, now and whenever something is drawn; null where lines have no numbers, as in a full-screen program. */
export function lookThrough(name: string, hear: (sight: Sight | null) => void): () => void {
  const [terminal, viewer, frame] = [emulators.get(name), viewers.get(name), frames.get(name)];
  if (!terminal || !viewer || !frame) return () => undefined;
  const look = (): void => {
    const top = viewer.lineRead();
    hear(top === null ? null : { terminal, epoch: viewer.epoch, top, height: frame.lineHeight, rowOf: (line) => viewer.rowOf(line), lineOf: (row) => viewer.lineOf(row) });
  };
  look();
  const stop = terminal.onRender(look);
  return () => stop.dispose();
}

/** Show a row of all that is there, in the middle unless it is in sight, below what lies over the terminal at its top. */
export function revealLine(name: string, row: number, col: number, over: Element | null): void {
  const [terminal, frame] = [emulators.get(name), frames.get(name)];
  const room = terminal?.element?.closest(".emulator");
  if (!terminal || !frame || !room) return;
  const covered = over ? Math.max(0, over.getBoundingClientRect().bottom - room.getBoundingClientRect().top) : 0;
  const rows = Math.ceil(covered / frame.lineHeight);
  let top = terminal.buffer.active.viewportY;
  if (row < top + rows || row >= top + terminal.rows) {
    top = Math.max(0, Math.min(row - Math.floor((terminal.rows + rows) / 2), terminal.buffer.active.baseY));
    scrollTo(terminal, top);
  }
  frame.reveal(row - top, col, covered);
}

/** What lay over the terminal is gone. */
export function uncover(name: string): void {
  frames.get(name)?.uncover();
}

export const fitters = new Map<string, () => void>();

const releasers = new Map<string, () => void>();
/** Take the keys back that an agent captured. */
export function releaseKeys(name: string): void {
  releasers.get(name)?.();
}

/** Give the session the size that has room here. */
export function fitSession(name: string): void {
  fitters.get(name)?.();
  emulators.get(name)?.focus();
}

/** What a large paste has come to. */
export const pasting = signal<{ name: string; share: number; stop: () => void } | null>(null);

async function pasteMuch(name: string, terminal: Terminal, viewer: Viewer, text: string): Promise<void> {
  const lines = text.replace(/\r?\n/g, "\r");
  const bracketed = terminal.modes.bracketedPasteMode;
  let going = true;
  pasting.value = { name, share: 0, stop: () => (going = false) };
  if (bracketed) viewer.type("\x1b[200~");
  const whole = await viewer.paste(lines, (share) => {
    if (going) pasting.value = { name, share, stop: () => (going = false) };
    return going;
  });
  if (bracketed) viewer.type("\x1b[201~");
  pasting.value = null;
  if (!whole) tell("The paste was stopped.", "What had been sent before is in the session.");
}

/** So many pixels of the wheel are a line: a notch has 120. */
const LINE_PX = 40;

const keepKeyboard = (event: Event): void => event.preventDefault();

/** `children` lie over the picture and move with it. */
export function TerminalView(props: { name: string; readOnly?: boolean; focus?: boolean; onRemote?: (r: Remote) => void; children?: ComponentChildren }) {
  const holder = useRef<HTMLDivElement>(null);
  const picture = useRef<HTMLDivElement>(null);
  const screen = useRef<HTMLDivElement>(null);
  const [remote, setRemote] = useState<Remote>(NOTHING);
  /** Lines that came since somebody scrolled back; null at the end. */
  const [since, setSince] = useState<number | null>(null);
  const go = useRef({ first: () => {}, last: () => {} });

  // At once when it is on the page, not after the next frame: the keyboard is there from the first moment.
  useLayoutEffect(() => {
    const element = holder.current as HTMLDivElement;
    const looksOnly = props.readOnly === true;
    const terminal = new Terminal({
      allowProposedApi: true,
      fontFamily: terminalFont(),
      fontSize: fontSize.peek(),
      lineHeight: 1.15,
      scrollback: looksOnly ? 0 : KEPT_LINES,
      theme: terminalTheme(),
      disableStdin: looksOnly,
      macOptionIsMeta: true,
      screenReaderMode: false,
      logLevel: "error",
    });
    terminal.loadAddon(new WebLinksAddon((event, link) => {
      if (event.ctrlKey || event.metaKey) window.open(link, "_blank", "noopener,noreferrer");
    }));
    terminal.loadAddon(new UnicodeGraphemesAddon());
    terminal.unicode.activeVersion = "15-graphemes";
    terminal.open(screen.current as HTMLDivElement);
    if (!looksOnly) void loadRenderer(terminal);
    const viewer = new Viewer(
      props.name,
      terminal,
      looksOnly,
      (change) => setRemote((old) => ({ ...old, ...change })),
      ({ rows, cols }) => {
        if (rows !== terminal.rows || cols !== terminal.cols) terminal.resize(cols, rows);
        place();
        requestAnimationFrame(place);
      },
    );
    viewer.fresh = !looksOnly && fresh.delete(props.name);
    const [before, after] = renamed.peek() ?? [];
    const came = after === props.name && before !== undefined && reading.has(before) ? before : props.name;
    if (!looksOnly) viewer.returnTo = reading.get(came) ?? null;
    if (!looksOnly) reading.delete(came);
    let later = 0;
    let opened = false;
    /** How often the person has moved: one move that waits for lines is given up after another. */
    let steps = 0;
    /** The line that was at the end when somebody scrolled back. */
    let left: { line: number; epoch: number | undefined } | null = null;
    const frame = looksOnly
      ? null
      : new Frame(element, picture.current as HTMLDivElement, terminal, (room) => {
          if (!opened) return viewer.beginWith(room);
          clearTimeout(later);
          later = window.setTimeout(() => viewer.fitsNow(room), 60);
        });
    if (frame) {
      frames.set(props.name, frame);
      new Finger(
        element,
        terminal,
        frame,
        (data) => viewer.type(data),
        (low) => (low === null ? letGo(props.name) : (picked.value = { session: props.name, low: !low })),
      );
    }
    const place = (): void => (frame ? frame.place(fontSize.peek()) : shrink(element, terminal));
    place();
    opened = true;
    viewer.open();
    // Who types goes on: a command that was chosen no longer is.
    const leaveBlock = (): void => {
      if (block.peek()?.session === props.name) block.value = null;
    };
    const stops = [
      terminal.onKey(leaveBlock),
      terminal.onData((data) => {
        steps++;
        picked.value = null;
        viewer.type(modified(data));
      }),
      terminal.onBinary((data) => viewer.typeBinary(data)),
      terminal.onScroll(() => viewer.stepped()),
      terminal.onRender(() => {
        viewer.looked();
        const { viewportY, baseY } = terminal.buffer.active;
        if (looksOnly) return;
        const line = viewer.lineOf(baseY);
        const now = line === null ? null : { line, epoch: viewer.epoch };
        if (viewportY >= baseY) left = null;
        else if (left?.epoch !== now?.epoch || left === null) left = now;
        setSince(viewportY >= baseY ? null : now && left ? Math.max(0, now.line - left.line) : 0);
      }),
      ...(looksOnly ? [terminal.onCursorMove(place)] : [terminal.parser.registerOscHandler(52, (data) => hearWish(props.name, data))]),
    ];
    const observer = new ResizeObserver(() => {
      if (element.clientWidth === 0) return;
      // What is told for a moment takes no rows from the session: a part of it is out of sight meanwhile.
      if (frame && narrow.peek() && toasts.peek().length > 0) frame.follow();
      else place();
    });
    observer.observe(element);
    const unfollow = effect(() => {
      void themeTick.value;
      terminal.options.theme = terminalTheme();
      terminal.options.fontFamily = terminalFont();
      if (looksOnly) terminal.options.fontSize = fontSize.value;
      else frame?.place(fontSize.value);
    });
    // Not by the emulator alone, which sends control characters as they are.
    const takePaste = (event: ClipboardEvent): void => {
      event.preventDefault();
      event.stopPropagation();
      paste(event.clipboardData?.getData("text") ?? "");
    };
    const paste = (raw: string): void => {
      const text = harmless(raw);
      if (text.length <= ASK_FIRST_BYTES) return terminal.paste(text);
      const title = `Paste ${(text.length / 1048576).toFixed(1)} MB into ${props.name}?`;
      question.value = { title, does: "Paste", then: () => void pasteMuch(props.name, terminal, viewer, text) };
    };
    /** What is on the clipboard stays there if only empty lines are selected. */
    const copySelection = (): void => {
      const text = terminal.getSelection();
      if (text) void copyText(text);
    };
    const toEnd = (): void => {
      steps++;
      noteScroll(terminal);
      terminal.scrollToBottom();
    };
    go.current = {
      first: () => {
        const mine = ++steps;
        scrollTo(terminal, 0);
        void viewer.load(true).then(() => mine === steps && scrollTo(terminal, 0));
      },
      last: toEnd,
    };
    // Shift+Home and Shift+End go to the first and the last line, beside Shift+PageUp and Shift+PageDown, which the emulator has itself.
    const goes = (event: KeyboardEvent): boolean => {
      const to = event.shiftKey && !event.ctrlKey && !event.altKey && terminal.buffer.active.type === "normal" ? event.key : "";
      if (to !== "Home" && to !== "End") return false;
      if (event.type === "keydown") go.current[to === "End" ? "last" : "first"]();
      event.preventDefault();
      return true;
    };
    const pagesUp = (event: KeyboardEvent): boolean => {
      if (event.key !== "PageUp" || !event.shiftKey || event.ctrlKey || event.altKey || event.metaKey || terminal.buffer.active.type !== "normal") return false;
      if (event.type === "keydown") viewer.pageUp();
      event.preventDefault();
      return true;
    };
    // Ctrl+C with something selected, and Ctrl+Shift+C, copy; otherwise Ctrl+C is the program's.
    terminal.attachCustomKeyEventHandler((event) => {
      if (goes(event) || pagesUp(event)) return false;
      // What is selected goes first; the next Escape is the program's.
      const chosen = terminal.hasSelection() || (block.peek()?.session === props.name && terminal.buffer.active.type === "normal");
      if (event.key === "Escape" && !event.ctrlKey && !event.altKey && !event.shiftKey && !event.metaKey && event.type === "keydown" && chosen) {
        event.preventDefault();
        terminal.clearSelection();
        leaveBlock();
        return false;
      }
      const copies = event.ctrlKey && !event.altKey && !event.metaKey && event.code === "KeyC" && (event.shiftKey || terminal.hasSelection());
      if (!copies) return true;
      event.preventDefault();
      if (event.type === "keydown" && terminal.hasSelection()) {
        copySelection();
        if (!event.shiftKey) terminal.clearSelection();
      }
      return false;
    });
    // A full-screen program that does not hear of the wheel is sent arrows, as many lines for a notch as earlier lines would go.
    let turned = 0;
    terminal.attachCustomWheelEventHandler((event) => {
      if (looksOnly || event.shiftKey || terminal.buffer.active.type === "normal" || terminal.modes.mouseTrackingMode !== "none") return true;
      turned += event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY / LINE_PX : event.deltaY;
      const lines = Math.trunc(turned);
      turned -= lines;
      if (lines) viewer.type(`\x1b${terminal.modes.applicationCursorKeysMode ? "O" : "["}${lines < 0 ? "A" : "B"}`.repeat(Math.abs(lines)));
      event.preventDefault();
      return false;
    });
    // A step goes on from what was printed last, not from what the emulator's scrollbar knew at the last frame.
    const beginStep = (event: Event): void => {
      noteScroll(terminal);
      if (event instanceof KeyboardEvent ? event.key.startsWith("Page") : event.type !== "pointerdown") steps++;
      if (!looksOnly && !(event instanceof KeyboardEvent && !event.shiftKey)) syncScrollbar(terminal);
    };
    for (const kind of ["wheel", "keydown", "pointerdown", "touchmove"]) element.addEventListener(kind, beginStep, { capture: true, passive: true });
    element.addEventListener("paste", takePaste, true);
    element.addEventListener("mousedown", () => window.addEventListener("mouseup", () => copyOnSelect.peek() && copySelection(), { once: true }));
    emulators.set(props.name, terminal);
    if (!looksOnly) {
      viewers.set(props.name, viewer);
      // Whoever sends something looks at the end, where it arrives.
      const toArrival = (): void => {
        picked.value = null;
        toEnd();
      };
      typers.set(props.name, (data) => (toArrival(), viewer.type(data)));
      runners.set(props.name, (command) => (toArrival(), viewer.run(command)));
      pasters.set(props.name, paste);
      releasers.set(props.name, () => viewer.release());
      fitters.set(props.name, () => viewer.fit());
    }
    if (props.focus !== false) {
      terminal.focus();
      deliver(props.name, terminal);
    }
    return () => {
      unfollow();
      observer.disconnect();
      element.removeEventListener("paste", takePaste, true);
      for (const stop of stops) stop.dispose();
      if (emulators.get(props.name) === terminal) emulators.delete(props.name);
      if (!looksOnly) {
        if (viewer.reads) reading.set(props.name, viewer.reads);
        viewers.delete(props.name);
        frames.delete(props.name);
        typers.delete(props.name);
        runners.delete(props.name);
        pasters.delete(props.name);
        releasers.delete(props.name);
        fitters.delete(props.name);
      }
      viewer.close();
      terminal.dispose();
    };
  }, [props.name, props.readOnly]);

  useLayoutEffect(() => props.onRemote?.(remote), [remote]);

  return (
    <div class={`terminal${remote.owner ? " captured" : ""}`} data-session={props.name}>
      {remote.owner && (
        <div class="capture" role="status">
          Keys captured by {remote.owner}. Press {leader.value} to take them back.
        </div>
      )}
      {remote.lost && connection.value === "connected" && (
        <div class="lost" role="status">
          Connection lost. Trying again…
        </div>
      )}
      <div class="emulator" ref={holder}>
        <div class="picture" ref={picture}>
          <div class="screen" ref={screen} />
          {props.children}
        </div>
      </div>
      {since !== null && (
        <div class="jumps">
          <button aria-label="To the first line" title="To the first line (Shift+Home)" onPointerDown={keepKeyboard} onMouseDown={keepKeyboard} onClick={() => go.current.first()}>
            ⤒
          </button>
          <button title="To the end (Shift+End)" onPointerDown={keepKeyboard} onMouseDown={keepKeyboard} onClick={() => go.current.last()}>
            ⤓ To the end{since > 0 && <span class="since">{since === 1 ? "1 new line" : `${since.toLocaleString("en")} new lines`}</span>}
          </button>
        </div>
      )}
    </div>
  );
}

/** Whether WebGL is drawn by hardware: in software it is slower than the plain renderer. */
function hasGraphics(): boolean {
  const context = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  if (!context) return false;
  const facts = context.getExtension("WEBGL_debug_renderer_info");
  const name = String(context.getParameter(facts ? facts.UNMASKED_RENDERER_WEBGL : context.RENDERER));
  context.getExtension("WEBGL_lose_context")?.loseContext();
  return !/swiftshader|llvmpipe|softpipe|software/i.test(name);
}

/** The quick renderer where the machine has one; the page works without. */
async function loadRenderer(terminal: Terminal): Promise<void> {
  if (!hasGraphics()) return;
  const { WebglAddon } = await import("@xterm/addon-webgl");
  try {
    const addon = new WebglAddon();
    addon.onContextLoss(() => addon.dispose());
    terminal.loadAddon(addon);
  } catch {
    // no context to be had: the plain renderer goes on
  }
}
