// A session in an emulator: pictures come from the server composed, keys go back as they are.
import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { UnicodeGraphemesAddon } from "@xterm/addon-unicode-graphemes";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import { effect, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { openSocket, sessionPath } from "./api";
import { tell } from "./store";
import { fontSize, terminalFont, terminalTheme, themeTick } from "./theme";

const ASK_FIRST_BYTES = 256 * 1024;
const EARLIER_LINES = 2000;
/** The server takes no message above a megabyte. */
const MESSAGE_BYTES = 128 * 1024;
export const searches = new Map<string, SearchAddon>();
export const emulators = new Map<string, Terminal>();

/** What the terminal in front shows, as text: for tests and for assistive scripts. */
export function shownText(name: string): string {
  const buffer = emulators.get(name)?.buffer.active;
  if (!buffer) return "";
  const lines: string[] = [];
  for (let line = 0; line < buffer.length; line++) lines.push(buffer.getLine(line)?.translateToString(true) ?? "");
  return lines.join("\n");
}

const typers = new Map<string, (data: string) => void>();
const runners = new Map<string, (command: string) => void>();
/** Modifiers that are down for the next key. */
export const held = signal({ ctrl: false, alt: false });

/** `data` as if the modifiers that are held had been pressed with it. */
function modified(data: string): string {
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

const ARROWS: Record<string, string> = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D" };

/** Press a key that the device's own keyboard lacks. */
export function typeKey(name: string, key: string): void {
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
  terminal.focus();
}

/** Put the keyboard into that terminal, if it is on the page. */
export function focusTerminal(name: string): void {
  emulators.get(name)?.focus();
}

/** Run a command where the line is empty; the server says so if it is not. Not by a request that waits for its end: browsers
 * repeat one that is answered with 408. */
export function enter(name: string, command: string): void {
  runners.get(name)?.(command);
  emulators.get(name)?.focus();
}

/** Show the newest place of `text` once the terminal is there and has its scrollback. */
export function findInTerminal(name: string, text: string, regex: boolean, tries = 20): void {
  const search = searches.get(name);
  const found = search?.findPrevious(text, { regex });
  if (!found && tries > 0) setTimeout(() => findInTerminal(name, text, regex, tries - 1), 150);
}

export interface Remote {
  owner: string | null;
  taken: string | null;
  /** Whose run waits until the line is empty, in words. */
  waits: string | null;
  exit: number | null | undefined;
  lost: boolean;
}

/** The connection of one viewer; comes back by itself, and the first thing after that is a whole picture. */
class Viewer {
  private socket: WebSocket | null = null;
  private pause = 200;
  private closed = false;
  private readonly encoder = new TextEncoder();

  constructor(
    private readonly name: string,
    private readonly terminal: Terminal,
    private readonly readOnly: boolean,
    private readonly tellRemote: (change: Partial<Remote>) => void,
    private readonly onSize: (rows: number, cols: number) => void,
  ) {
    this.open();
  }

  private open(): void {
    const query = (): Record<string, string> => ({
      rows: String(this.terminal.rows),
      cols: String(this.terminal.cols),
      ...(this.readOnly ? { read_only: "true" } : { scrollback: String(EARLIER_LINES) }),
    });
    openSocket(sessionPath(this.name, "/ws/view"), query).then(
      (socket) => (this.closed ? socket.close() : this.use(socket)),
      () => this.comeBack(),
    );
  }

  private comeBack(): void {
    if (this.closed) return;
    this.tellRemote({ lost: true });
    setTimeout(() => {
      if (!this.closed) this.open();
    }, this.pause);
    this.pause = Math.min(this.pause * 1.7, 4000);
  }

  private use(socket: WebSocket): void {
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => {
      // The whole picture comes again, with what scrolled off before it.
      this.terminal.reset();
      this.tellRemote({ owner: null, taken: null, waits: null });
      this.pause = 200;
      this.tellRemote({ lost: false });
    };
    socket.onmessage = (message) => {
      if (typeof message.data === "string") this.hear(JSON.parse(message.data) as Record<string, unknown>);
      else this.terminal.write(new Uint8Array(message.data as ArrayBuffer));
    };
    socket.onclose = () => this.comeBack();
  }

  private hear(said: Record<string, unknown>): void {
    switch (said.type) {
      case "size":
        this.onSize(Number(said.rows), Number(said.cols));
        break;
      case "input_mode":
        this.tellRemote({ owner: (said.owner as string | null) ?? null });
        break;
      case "taken":
        this.tellRemote({ taken: (said.by as string | null) ?? null });
        break;
      case "run_waits":
        this.tellRemote({ waits: said.by ? `${String(said.by)} wants to run ${String(said.command)}` : null });
        break;
      case "exit":
        this.tellRemote({ exit: said.exit_code as number | null });
        break;
      case "error":
        tell(String(said.message), said.hint as string | undefined, true);
        break;
      case "dismissed":
        this.close();
        this.tellRemote({ lost: true });
        break;
    }
  }

  type(data: string): void {
    const bytes = this.encoder.encode(data);
    for (let at = 0; at < bytes.length && this.socket?.readyState === WebSocket.OPEN; at += MESSAGE_BYTES) {
      this.socket.send(bytes.subarray(at, at + MESSAGE_BYTES));
    }
  }

  run(command: string): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type: "run", command }));
  }

  typeBinary(data: string): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(Uint8Array.from(data, (c) => c.charCodeAt(0)));
  }

  resize(rows: number, cols: number): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type: "resize", rows, cols }));
  }

  close(): void {
    this.closed = true;
    this.socket?.close();
  }
}

export function TerminalView(props: { name: string; readOnly?: boolean; focus?: boolean; onRemote?: (r: Remote) => void }) {
  const holder = useRef<HTMLDivElement>(null);
  const [remote, setRemote] = useState<Remote>({ owner: null, taken: null, waits: null, exit: undefined, lost: false });

  useEffect(() => {
    const element = holder.current as HTMLDivElement;
    const terminal = new Terminal({
      allowProposedApi: true,
      fontFamily: terminalFont(),
      fontSize: fontSize.peek(),
      lineHeight: 1.15,
      scrollback: 5000,
      theme: terminalTheme(),
      disableStdin: props.readOnly === true,
      macOptionIsMeta: true,
      screenReaderMode: false,
    });
    const fit = new FitAddon();
    const search = new SearchAddon();
    terminal.loadAddon(fit);
    terminal.loadAddon(search);
    terminal.loadAddon(new WebLinksAddon((event, link) => {
      if (event.ctrlKey || event.metaKey) window.open(link, "_blank", "noopener,noreferrer");
    }));
    terminal.loadAddon(new UnicodeGraphemesAddon());
    terminal.unicode.activeVersion = "15-graphemes";
    terminal.open(element);
    if (props.readOnly !== true) void loadRenderer(terminal);
    // Whoever only looks takes the session's size and is drawn smaller; whoever types gives the session theirs.
    const looksOnly = props.readOnly === true;
    const place = (): void => {
      if (!looksOnly) fit.fit();
      else shrink(element, terminal);
    };
    place();
    const viewer = new Viewer(
      props.name,
      terminal,
      looksOnly,
      (change) => setRemote((old) => ({ ...old, ...change })),
      (rows, cols) => {
        if (looksOnly && (rows !== terminal.rows || cols !== terminal.cols)) terminal.resize(cols, rows);
        if (looksOnly) requestAnimationFrame(place);
      },
    );
    const stops = [
      terminal.onData((data) => viewer.type(modified(data))),
      terminal.onBinary((data) => viewer.typeBinary(data)),
      terminal.onResize(({ rows, cols }) => viewer.resize(rows, cols)),
    ];
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) place();
    });
    observer.observe(element);
    const unfollow = effect(() => {
      void themeTick.value;
      terminal.options.theme = terminalTheme();
      terminal.options.fontSize = fontSize.value;
      place();
    });
    const ask = (event: ClipboardEvent): void => {
      const text = event.clipboardData?.getData("text") ?? "";
      if (text.length > ASK_FIRST_BYTES && !window.confirm(`Paste ${(text.length / 1048576).toFixed(1)} MB into ${props.name}?`)) {
        event.preventDefault();
        event.stopPropagation();
      }
    };
    element.addEventListener("paste", ask, true);
    searches.set(props.name, search);
    emulators.set(props.name, terminal);
    if (!looksOnly) {
      typers.set(props.name, (data) => viewer.type(data));
      runners.set(props.name, (command) => viewer.run(command));
    }
    if (props.focus !== false) terminal.focus();
    return () => {
      unfollow();
      observer.disconnect();
      element.removeEventListener("paste", ask, true);
      for (const stop of stops) stop.dispose();
      if (searches.get(props.name) === search) searches.delete(props.name);
      if (emulators.get(props.name) === terminal) emulators.delete(props.name);
      if (!looksOnly) {
        typers.delete(props.name);
        runners.delete(props.name);
      }
      viewer.close();
      terminal.dispose();
    };
  }, [props.name, props.readOnly]);

  useEffect(() => props.onRemote?.(remote), [remote]);

  return (
    <div class={`terminal${remote.owner ? " captured" : ""}`} data-session={props.name}>
      {remote.owner && (
        <div class="capture" role="status">
          Keys captured by {remote.owner}. Press Ctrl+\ to take them back.
        </div>
      )}
      {remote.lost && (
        <div class="lost" role="status">
          Connection lost. Trying again…
        </div>
      )}
      <div class="emulator" ref={holder} />
    </div>
  );
}

/** Scale the emulator to fit its tile. */
function shrink(element: HTMLElement, terminal: Terminal): void {
  const screen = element.querySelector<HTMLElement>(".xterm-screen");
  if (!screen || !terminal.element || screen.offsetWidth === 0) return;
  const scale = Math.min(1, (element.clientWidth - 16) / screen.offsetWidth, (element.clientHeight - 12) / screen.offsetHeight);
  terminal.element.style.transformOrigin = "0 0";
  terminal.element.style.transform = `scale(${scale})`;
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
