// The connection of one viewer: pictures in, keys out. It comes back by itself, and the first thing after that is a whole picture.
import type { IMarker, Terminal } from "@xterm/xterm";
import { openSocket, sessionPath } from "./api";
import { MESSAGE_BYTES, outboxOf } from "./outbox";
import { leader, noteTyped, setNotice, tell } from "./store";

/** Earlier lines that come with the first picture; more are asked for as somebody scrolls up to them. */
const EARLIER_LINES = 2000;
const MORE_TIMES = 5;
/** The server gives no more. */
const MOST_LINES = 100_000;
/** Rows from the top at which more are asked for. */
const NEAR_TOP = 300;
/** Pieces of a large paste that may be on their way to the program at once. */
const PIECES = 4;
/** Lines that the emulator keeps above those that it was given. */
export const KEPT_LINES = 10_000;
/** A known place is taken anew after so many lines: the emulator lets go of old ones. */
const ANCHOR_LINES = 1000;
/** A tile among many is drawn so often, not with every frame: painting is what a grid costs. */
const TILE_MS = 100;
/** So long somebody who has gone elsewhere may wait for a connection that takes the keys which they pressed here. */
const LEAVE_MS = 60_000;

export interface Size {
  rows: number;
  cols: number;
}

export interface Remote {
  owner: string | null;
  taken: string | null;
  /** Whose run waits until the line is empty, in words. */
  waits: string | null;
  exit: number | null | undefined;
  lost: boolean;
  /** The session's own size. */
  size: Size | null;
  /** What has room here. */
  fits: Size | null;
  /** Whether the session takes that size when somebody types here. */
  follows: boolean;
}

export const NOTHING: Remote = { owner: null, taken: null, waits: null, exit: undefined, lost: false, size: null, fits: null, follows: false };

const SETTLE_FRAMES = 8;
const moves = new WeakMap<Terminal, number>();

/** Something scrolls this terminal, a person or the page: what was to be scrolled to before no longer counts. */
export function noteScroll(terminal: Terminal): number {
  const mine = (moves.get(terminal) ?? 0) + 1;
  moves.set(terminal, mine);
  return mine;
}

/** The emulator's scrollbar learns of new lines with the next frame, and takes back a move beyond those that it knows: it is told now. */
export function syncScrollbar(terminal: Terminal): void {
  const { _core: core } = terminal as unknown as { _core?: { _viewport?: { _sync?: () => void } } };
  core?._viewport?._sync?.();
}

/** Write without a pause in which the person could do something. */
function writeNow(terminal: Terminal, bytes: Uint8Array, then: () => void): void {
  const { _core: core } = terminal as unknown as { _core?: { writeSync?: (bytes: Uint8Array) => void } };
  if (!core?.writeSync) {
    terminal.write(bytes, then);
    return;
  }
  core.writeSync(bytes);
  then();
  // Who listens to what is written hears of it. Not an empty text: the emulator's next writing at once would end at it.
  terminal.write(new Uint8Array());
}

/** What a viewer holds for a step back no longer counts. */
const holders = new WeakMap<Terminal, () => void>();

/** Bring a line to the top, and look some frames long whether it stays there. It is this line, not one so many lines back from the end. */
export function scrollTo(terminal: Terminal, line: number): void {
  const mine = noteScroll(terminal);
  let turns = SETTLE_FRAMES;
  const move = (): void => {
    if (moves.get(terminal) !== mine) return;
    const wanted = Math.max(0, Math.min(line, terminal.buffer.active.baseY));
    if (terminal.buffer.active.viewportY !== wanted) {
      syncScrollbar(terminal);
      terminal.scrollToLine(wanted);
    }
    holders.get(terminal)?.();
    if (turns-- > 0) requestAnimationFrame(move);
  };
  move();
}

/** A line by its number, which counts in an epoch. */
export interface Place {
  line: number;
  epoch: number | undefined;
}

interface Anchor {
  marker: IMarker;
  line: number;
  epoch: number;
}

export class Viewer {
  private socket: WebSocket | null = null;
  private pause = 200;
  private closed = false;
  /** Nobody looks any more, and keys that were pressed here still have to go. */
  private leaving = false;
  private readonly encoder = new TextEncoder();
  private readonly outbox;
  /** Whether the server has said how much of what was typed it has: before that nothing more is sent. */
  private ready = false;
  /** Whether it tells what it has written. */
  private receipts = false;
  private undrawn: Uint8Array[] = [];
  private resting = false;
  private marks = new Map<number, () => void>();
  private nextMark = 1;
  /** How often what was on its way was lost with the machine that the session is on. What a lost connection held is sent again. */
  private cuts = 0;
  private room: Size = { rows: 24, cols: 80 };
  /** The session takes the size that has room here before anybody has typed: it was opened here. */
  fresh = false;
  private lines = EARLIER_LINES;
  /** Whether the server has lines above those that are here. */
  private more = false;
  /** The first line that it had when it last told. */
  private first = 0;
  /** Lines that scrolled off were left out. */
  private gap = false;
  private asking = false;
  private askedFor = 0;
  /** Set while a picture with earlier lines is on its way. */
  private coming: "picture" | "answer" | null = null;
  private heard: (() => void)[] = [];
  /** A row whose line has this number at the server. Numbers count in an epoch, which another size ends. */
  private anchor: Anchor | null = null;
  /** The same for rows above a gap, where somebody may read. */
  private above: Anchor | null = null;
  /** The first line after the newest gap. */
  private since = 0;
  /** Lines that are still to come between those above the screen and the screen itself, which is drawn first. */
  private awaited = 0;
  /** The same with the picture that comes next. */
  private awaitedNext = 0;
  /** Where somebody stepped back to over lines that were still to come: the row holds the place of this line, and shows another. */
  private held: Anchor | null = null;
  private atEnd = true;
  /** Whether there is a picture. */
  drawn = false;

  constructor(
    private readonly name: string,
    private readonly terminal: Terminal,
    private readonly readOnly: boolean,
    private readonly tellRemote: (change: Partial<Remote>) => void,
    private readonly onSize: (size: Size) => void,
  ) {
    this.outbox = outboxOf(readOnly ? "" : name);
    if (!readOnly) this.outbox.handTo(() => this.end());
    holders.set(terminal, () => this.letGo());
  }

  open(): void {
    const query = (): Record<string, string> => ({
      rows: String(this.room.rows),
      cols: String(this.room.cols),
      whole: "true",
      prefix: leader.value,
      ...(this.readOnly ? { read_only: "true" } : { scrollback: String(this.lines), input_id: String(this.outbox.id), typed: String(this.outbox.written) }),
    });
    openSocket(sessionPath(this.name, "/ws/view"), query).then(
      (socket) => (this.closed ? socket.close() : this.use(socket)),
      () => this.comeBack(),
    );
  }

  private comeBack(): void {
    if (this.closed) return;
    if (!this.leaving) this.tellRemote({ lost: true });
    this.giveUp();
    setTimeout(() => {
      if (!this.closed) this.open();
    }, this.pause);
    this.pause = Math.min(this.pause * 1.7, 4000);
  }

  /** What was asked for and has no answer yet gets none. */
  private giveUp(): void {
    for (const done of this.marks.values()) done();
    this.marks.clear();
    this.settle();
  }

  private use(socket: WebSocket): void {
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    const { rows, cols } = this.room;
    this.ready = false;
    socket.onopen = () => {
      if (this.leaving) return;
      // The whole picture comes again, with what scrolled off before it. Who reads earlier lines goes on there.
      this.undrawn = [];
      this.returnTo ??= this.reads;
      this.terminal.reset();
      this.coming = null;
      this.gap = false;
      this.place = null;
      this.awaited = this.awaitedNext = 0;
      this.letGo();
      this.tellRemote({ owner: null, taken: null, waits: null, lost: false });
      this.pause = 200;
      if (this.fresh || rows !== this.room.rows || cols !== this.room.cols) this.fitsNow(this.room);
    };
    socket.onmessage = (message) => {
      if (this.closed) return;
      const said = typeof message.data === "string" ? (JSON.parse(message.data) as Record<string, unknown>) : null;
      if (!this.ready) this.begin(said);
      if (said?.type === "typed") this.hearTyped(said);
      else if (this.leaving) return;
      else if (said) this.hear(said);
      else this.draw(new Uint8Array(message.data as ArrayBuffer));
    };
    socket.onclose = () => this.comeBack();
  }

  private draw(bytes: Uint8Array): void {
    if (this.readOnly && this.resting) {
      this.undrawn.push(bytes);
      return;
    }
    const [awaited, note] = [this.awaitedNext, this.place];
    if (this.coming) this.drawAnew(bytes);
    else {
      this.place = null;
      this.terminal.write(bytes, () => {
        this.drawn = true;
        this.awaited = awaited;
        note?.();
      });
    }
    if (!this.readOnly) return;
    this.resting = true;
    setTimeout(() => {
      this.resting = false;
      const [first, ...rest] = this.undrawn;
      this.undrawn = [];
      if (!first || this.closed) return;
      for (const one of [first, ...rest]) this.terminal.write(one);
      this.draw(new Uint8Array());
    }, TILE_MS);
  }

  /** The picture with its earlier lines: written in one go, so that a person who scrolls meanwhile goes on from what they saw. */
  private drawAnew(bytes: Uint8Array): void {
    const answers = this.coming === "answer";
    this.coming = null;
    const { baseY, viewportY } = this.terminal.buffer.active;
    const top = this.lineRead();
    const epoch = this.anchor?.epoch;
    const select = this.keepSelection();
    // At the end the emulator follows what is written; from anywhere else it would be led astray.
    if (viewportY < baseY) this.terminal.scrollToBottom();
    writeNow(this.terminal, bytes, () => {
      this.drawn = true;
      this.awaited = 0;
      this.letGo();
      this.anchor = this.above = null;
      this.place?.();
      this.place = null;
      if (viewportY < baseY) {
        // The same line at the top as before, whatever was printed meanwhile.
        const end = this.terminal.buffer.active.baseY;
        const last = this.anchor === null || this.epoch !== epoch ? null : this.lineOf(end);
        scrollTo(this.terminal, top !== null && last !== null ? end - (last - top) : end - (baseY - viewportY));
      }
      select();
      this.goBack();
      if (answers) this.settle();
    });
  }

  /** Where somebody was reading who has come again. */
  returnTo: Place | null = null;

  /** Where somebody reads earlier lines now. */
  get reads(): Place | null {
    const { viewportY, baseY } = this.terminal.buffer.active;
    const line = viewportY < baseY ? this.lineRead() : null;
    return line === null ? null : { line, epoch: this.epoch };
  }

  private goBack(): void {
    const to = this.returnTo;
    this.returnTo = null;
    const row = to && to.epoch === this.epoch ? this.rowOf(to.line) : null;
    if (!to || row === null) return;
    if (row >= 0) scrollTo(this.terminal, row);
    else if (this.hasMore && !this.asking) {
      this.returnTo = to;
      this.fetch(this.lines * MORE_TIMES, to.line);
    }
  }

  /** Set when the server has said which line is at the end of the picture that comes next. */
  private place: (() => void) | null = null;

  get epoch(): number | undefined {
    return this.anchor?.epoch;
  }

  /** The lines above the screen end before that one. */
  private noteLine(said: Record<string, unknown>, behindGap = false): () => void {
    return () => {
      const buffer = this.terminal.buffer.active;
      if (said.line === undefined || buffer.type !== "normal") return;
      const row = Math.max(0, buffer.baseY - 1);
      const marker = this.terminal.registerMarker(row - buffer.baseY - buffer.cursorY);
      if (!marker) return;
      const old = [this.anchor, this.above];
      if (behindGap) {
        // Who is at the end reads nothing above the gaps before this one.
        if (!this.above || buffer.viewportY >= buffer.baseY) this.above = this.anchor;
        this.since = Number(said.since ?? said.line);
      }
      for (const one of old) if (one !== this.above) one?.marker.dispose();
      this.anchor = { marker, line: Number(said.line) + row - buffer.baseY, epoch: Number(said.epoch) };
    };
  }

  /** The number at the server of the line in a row; null where that is not known. */
  lineOf(row: number, anchor = this.anchor): number | null {
    if (!anchor || anchor.marker.isDisposed || !this.normal) return null;
    const line = anchor.line + row - anchor.marker.line;
    const { baseY } = this.terminal.buffer.active;
    if (row - anchor.marker.line > ANCHOR_LINES && row === baseY) this.noteLine({ line, epoch: anchor.epoch })();
    return row < baseY ? line : line + this.awaited;
  }

  /** The row of a line of the session, where numbers are known. */
  rowOf(line: number): number | null {
    const anchor = this.anchor;
    if (!anchor || anchor.marker.isDisposed || !this.normal) return null;
    const row = anchor.marker.line + line - anchor.line;
    const { baseY } = this.terminal.buffer.active;
    return row < baseY ? row : row < baseY + this.awaited ? null : row - this.awaited;
  }

  /** The number of the line at the top of what is shown. */
  lineRead(): number | null {
    const top = this.terminal.buffer.active.viewportY;
    const { held } = this;
    if (held && held.epoch === this.epoch && !held.marker.isDisposed) return held.line + top - held.marker.line;
    return this.lineShown(top);
  }

  /** The number of the line that a row shows, also above a gap. */
  private lineShown(row: number): number | null {
    const line = this.lineOf(row);
    return this.above && line !== null && line < this.since ? this.lineOf(row, this.above) : line;
  }

  /** Notes what is selected. To be called when the picture was drawn anew: the same text is selected, where its lines are then. */
  private keepSelection(): () => void {
    const { terminal, epoch } = this;
    const range = terminal.getSelectionPosition();
    const line = range ? this.lineShown(range.start.y) : null;
    if (!range || line === null) return () => undefined;
    const length = (range.end.y - range.start.y) * terminal.cols + range.end.x - range.start.x;
    return () => {
      const row = this.epoch === epoch ? this.rowOf(line) : null;
      if (row !== null && row >= 0) terminal.select(range.start.x, row, length);
    };
  }

  private settle(): void {
    this.asking = false;
    for (const hear of this.heard.splice(0)) hear();
  }

  private get normal(): boolean {
    return this.terminal.buffer.active.type === "normal";
  }

  /** The view moved. Who steps back from the end goes so many lines back, also where those are still to come. */
  stepped(): void {
    const { viewportY, baseY } = this.terminal.buffer.active;
    const leaves = this.atEnd && viewportY < baseY;
    this.atEnd = viewportY >= baseY;
    if (this.atEnd && this.held) this.letGo();
    if (!leaves || !this.awaited || !this.normal) return;
    const screen = this.lineOf(baseY);
    if (screen !== null) this.hold(screen + viewportY - baseY);
  }

  /** A page up, also where the emulator has fewer lines so far because some are still to come. */
  pageUp(): void {
    const { terminal } = this;
    const lines = terminal.rows - 1;
    const before = terminal.buffer.active.viewportY;
    terminal.scrollLines(-lines);
    const missing = lines - (before - terminal.buffer.active.viewportY);
    const line = missing > 0 && this.hasMore && !this.held ? this.lineRead() : null;
    if (line !== null) this.hold(line);
    if (this.held) this.held.line -= missing;
  }

  /** The row at the top stands for that line, which is still to come. */
  private hold(line: number): void {
    const { viewportY, baseY, cursorY } = this.terminal.buffer.active;
    const marker = this.terminal.registerMarker(viewportY - baseY - cursorY);
    if (marker) this.held = { marker, line, epoch: Number(this.epoch) };
  }

  private letGo(): void {
    this.held?.marker.dispose();
    this.held = null;
  }

  /** The person may have scrolled: lines above the first one are fetched before they are reached, and a gap is closed when they look back. */
  looked(): void {
    const { viewportY, baseY } = this.terminal.buffer.active;
    if (this.asking || this.readOnly || !this.normal || viewportY >= baseY) return;
    if (this.hasMore && viewportY < NEAR_TOP) this.fetch(this.lines * MORE_TIMES);
    else if (this.gap || this.held) this.fetch(Math.max(this.lines, baseY));
  }

  /** Also lines that the emulator has let go of meanwhile. */
  private get hasMore(): boolean {
    return this.more || (this.lines < MOST_LINES && (this.lineOf(0) ?? 0) > this.first);
  }

  /** Whether lines are missing between those that are here. */
  private get isBroken(): boolean {
    return this.gap || this.awaited > 0;
  }

  /** Whether there were lines before the first one that is here. */
  get beginsLater(): boolean {
    return (this.lineOf(0) ?? 0) > 0;
  }

  /** Resolves when no lines are missing between those that are here or, if asked for, all are here that the server gives. */
  async load(all: boolean): Promise<void> {
    while (this.asking) await new Promise<void>((resolve) => this.heard.push(resolve));
    if (!this.normal || !(this.isBroken || (all && this.hasMore)) || !this.isOpen) return;
    const here = new Promise<void>((resolve) => this.heard.push(resolve));
    this.fetch(all ? MOST_LINES : Math.max(this.lines, this.terminal.buffer.active.baseY));
    await here;
  }

  private fetch(lines: number, line = this.reads?.line): void {
    this.lines = Math.min(MOST_LINES, lines);
    this.asking = true;
    this.askedFor = this.lines;
    const reads = line === undefined ? {} : { from_line: Math.max(0, line - NEAR_TOP), epoch: this.epoch };
    this.say({ type: "scrollback", lines: this.lines, ...reads });
  }

  /** The first message says how much of what was typed before has come; the rest goes now. */
  private begin(said: Record<string, unknown> | null): void {
    this.ready = true;
    this.receipts = said?.type === "typed";
    if (!this.receipts) this.outbox.resume(this.outbox.written); // a server on another machine that knows nothing of it
    else if (said?.unsure === true) {
      this.outbox.forget(Number(said.received));
      if (!this.leaving) tell("The server ended at the moment when a key arrived: the last one may be missing.", "Look at the line before you go on.", true);
    } else this.outbox.resume(Number(said?.received));
    this.flush();
  }

  private hearTyped(said: Record<string, unknown>): void {
    if (said.written !== undefined) {
      this.outbox.acknowledge(Number(said.written));
      noteTyped(this.name);
    }
    if (this.leaving && this.outbox.empty) this.end();
  }

  private flush(): void {
    if (!this.ready || !this.isOpen) return;
    for (const bytes of this.outbox.take()) this.socket?.send(bytes as Uint8Array<ArrayBuffer>);
    if (!this.receipts) this.outbox.forget();
    if (this.leaving && this.outbox.empty) this.end();
  }

  private hear(said: Record<string, unknown>): void {
    switch (said.type) {
      case "size": {
        const size = { rows: Number(said.rows), cols: Number(said.cols) };
        this.tellRemote({ size, follows: said.follows === true });
        this.onSize(size);
        break;
      }
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
      case "scrollback": {
        // A picture that was under way when more was asked for is not yet the answer.
        this.coming = this.asking && (said.asked ?? this.askedFor) === this.askedFor ? "answer" : "picture";
        this.lines = Math.max(this.lines, Number(said.lines));
        this.more = said.more === true && this.lines < MOST_LINES;
        this.first = Number(said.first ?? 0);
        this.gap = false;
        this.awaitedNext = 0;
        const room = Number(said.lines) + KEPT_LINES;
        if (room > (this.terminal.options.scrollback ?? 0)) this.terminal.options.scrollback = room;
        this.place = this.noteLine(said);
        break;
      }
      case "gap":
        this.gap = true;
        this.place = this.noteLine(said, true);
        break;
      case "behind":
        this.awaitedNext = Number(said.lines);
        break;
      case "notice":
        setNotice(this.name, said.text as string | null);
        break;
      case "mark":
        this.marks.get(Number(said.id))?.();
        this.marks.delete(Number(said.id));
        break;
      case "error":
        tell(String(said.message), said.hint as string | undefined, true);
        break;
      case "host": // the machine that the session is on was lost, or is back: what was typed meanwhile reaches nobody
        this.receipts = false;
        this.outbox.forget();
        this.cuts++;
        this.giveUp();
        this.tellRemote({ lost: said.online !== true });
        break;
      case "dismissed":
        this.end();
        this.tellRemote({ lost: true });
        break;
    }
  }

  private get isOpen(): boolean {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Send what was typed, and keep it until it is written; while the connection is opening it waits. */
  private sendBytes(bytes: Uint8Array): void {
    if (this.closed) return;
    this.outbox.put(bytes, this.isOpen);
    this.flush();
  }

  private say(message: Record<string, unknown>): void {
    if (this.isOpen) this.socket?.send(JSON.stringify(message));
  }

  type(data: string): void {
    this.fresh = false;
    this.sendBytes(this.encoder.encode(data));
  }

  typeBinary(data: string): void {
    this.sendBytes(Uint8Array.from(data, (c) => c.charCodeAt(0)));
  }

  /** Type much text, as fast as the program reads it. `onProgress` hears a share of 1 and says whether to go on; whether all of it went. */
  async paste(data: string, onProgress: (share: number) => boolean): Promise<boolean> {
    const bytes = this.encoder.encode(data);
    const under: Promise<void>[] = [];
    const { cuts } = this;
    let taken = 0;
    for (let at = 0; at < bytes.length; at += MESSAGE_BYTES) {
      const piece = bytes.subarray(at, at + MESSAGE_BYTES);
      this.sendBytes(piece);
      under.push(this.mark().then(() => void (taken += piece.length)));
      if (under.length >= PIECES) await under.shift();
      if (!this.isOpen || this.cuts !== cuts || !onProgress(taken / bytes.length)) return false;
    }
    for (const one of under) {
      await one;
      if (this.cuts !== cuts) return false;
      onProgress(taken / bytes.length);
    }
    return true;
  }

  /** When the program has taken everything that was typed before. */
  private mark(): Promise<void> {
    return new Promise((resolve) => {
      const id = this.nextMark++;
      this.marks.set(id, resolve);
      if (this.isOpen) this.say({ type: "mark", id });
      else resolve();
    });
  }

  run(command: string): void {
    if (this.isOpen) this.say({ type: "run", command });
    else tell("Not run: the server does not answer.", "Run it again when it is back.", true);
  }

  /** So much has room here, as is known before it opens. */
  beginWith(room: Size): void {
    this.room = room;
    this.tellRemote({ fits: room });
  }

  /** So much has room here; the session takes it where its policy says so. */
  fitsNow(room: Size): void {
    this.room = room;
    this.tellRemote({ fits: room });
    this.say({ type: "resize", ...room });
    if (this.fresh) this.fit();
  }

  release(): void {
    this.say({ type: "release" });
  }

  fit(): void {
    this.say({ type: "fit" });
  }

  close(): void {
    if (this.outbox.empty) this.end();
    else {
      this.leaving = true;
      setTimeout(() => this.end(), LEAVE_MS);
    }
  }

  private end(): void {
    this.closed = true;
    this.socket?.close();
  }
}
