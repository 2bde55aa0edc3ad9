// What was typed here and is not yet known to be written: kept, so that it can be sent again, once.

/** Typed while there is no connection, so much is kept. */
const KEPT_BYTES = 64 * 1024;
/** The server takes no message above a megabyte. */
export const MESSAGE_BYTES = 128 * 1024;
const ID_LIMIT = 2 ** 24;

const boxes = new Map<string, Outbox>();

/** What is typed into one session from this page; by its number the server knows whoever comes again, also after another part of the page showed it. */
export function outboxOf(session: string): Outbox {
  const found = boxes.get(session) ?? new Outbox();
  boxes.set(session, found);
  return found;
}

/** A session has another name, or none any more: nothing is typed into one that takes its name later. */
export function moveOutbox(session: string, to: string | null): void {
  const found = boxes.get(session);
  boxes.delete(session);
  if (found && to !== null) boxes.set(to, found);
}

/** Positions count the bytes that were ever typed here. */
export class Outbox {
  /** By this number the server knows the viewer again. */
  readonly id = 1 + Math.floor(Math.random() * (ID_LIMIT - 1));
  /** Ends the connection that sends from here; another one takes its place. */
  private stop: (() => void) | null = null;
  private pieces: Uint8Array[] = [];
  /** Written by the server up to here. */
  written = 0;
  private sent = 0;
  private end = 0;

  get empty(): boolean {
    return this.end === this.written;
  }

  /** From now on another connection sends what is here. */
  handTo(stop: () => void): void {
    this.stop?.();
    this.stop = stop;
  }

  /** Keep what was typed; without a connection there is room for a little only. */
  put(bytes: Uint8Array, connected: boolean): void {
    if (!connected && this.end - this.sent + bytes.length > KEPT_BYTES) return;
    for (let at = 0; at < bytes.length; at += MESSAGE_BYTES) this.pieces.push(bytes.subarray(at, at + MESSAGE_BYTES));
    this.end += bytes.length;
  }

  /** What is to be sent now. */
  take(): Uint8Array[] {
    const found: Uint8Array[] = [];
    let at = this.written;
    for (const piece of this.pieces) {
      if (at + piece.length > this.sent) found.push(piece.subarray(Math.max(0, this.sent - at)));
      at += piece.length;
    }
    this.sent = this.end;
    return found;
  }

  /** The server has written everything up to there. */
  acknowledge(written: number): void {
    while (this.pieces[0] && this.written < written) {
      const part = Math.min(this.pieces[0].length, written - this.written);
      this.written += part;
      if (part === this.pieces[0].length) this.pieces.shift();
      else this.pieces[0] = this.pieces[0].subarray(part);
    }
    this.sent = Math.max(this.sent, this.written);
  }

  /** A connection begins: the server has everything up to `received`, and what was sent after that is sent again. */
  resume(received: number): void {
    this.sent = Math.max(this.written, Math.min(received, this.end));
  }

  /** What was sent is not sent again: whether it was written cannot be known. Positions go on from `count`. */
  forget(count = this.sent): void {
    const rest = this.end - this.sent;
    let drop = this.sent - this.written;
    while (this.pieces[0] && drop > 0) {
      const part = Math.min(this.pieces[0].length, drop);
      drop -= part;
      if (part === this.pieces[0].length) this.pieces.shift();
      else this.pieces[0] = this.pieces[0].subarray(part);
    }
    this.written = this.sent = count;
    this.end = count + rest;
  }
}
