// A finger on a terminal: it goes through earlier lines and glides on, moves a picture that is larger than its room, and turns the wheel of full-screen programs.
import type { Terminal } from "@xterm/xterm";
import type { Frame } from "./frame";
import { cellAt, selectBetween, wordAt, type Cell } from "./pick";
import { noteScroll } from "./viewer";

/** A finger that rests so long holds what is below it. */
const HOLD_MS = 450;
/** It may tremble by so many pixels. */
const TREMBLE_PX = 10;
/** A word so near is meant. */
const NEAR_PX = 10;
/** So near to an edge, what is selected goes on beyond it. */
const EDGE_PX = 28;

/** How a finger's speed fades once it has left: to a third in so many milliseconds. */
const FADE_MS = 325;
/** Below this speed, in pixels per millisecond, it stands still. */
const SLOWEST = 0.03;
/** A finger that rested so long before it left throws nothing. */
const REST_MS = 80;
const FASTEST = 5;
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

export class Finger {
  private last: { x: number; y: number; at: number } | null = null;
  private speed = 0;
  private gliding = 0;
  /** Parts of a line that were moved and not yet shown. */
  private rest = 0;
  private holding = 0;
  private from = { x: 0, y: 0 };
  /** The word that is held, while the finger is down: what is selected goes from it to the finger. */
  private word: [Cell, Cell] | "none" | null = null;

  constructor(
    room: HTMLElement,
    private readonly terminal: Terminal,
    private readonly frame: Frame,
    private readonly type: (data: string) => void,
    /** Something was held, below or above the middle; or, with null, the terminal was only tapped. */
    private readonly onHold: (low: boolean | null) => void,
  ) {
    const on = (kind: "touchstart" | "touchmove" | "touchend" | "touchcancel", hear: (event: TouchEvent) => void): void =>
      room.addEventListener(kind, hear, { passive: kind !== "touchmove" && kind !== "touchend" });
    on("touchstart", (event) => this.begin(event));
    on("touchmove", (event) => this.move(event));
    on("touchend", (event) => this.end(event));
    on("touchcancel", () => {
      this.last = this.word = null;
      clearTimeout(this.holding);
    });
    room.addEventListener("contextmenu", (event) => this.word && event.preventDefault());
  }

  /** The word below the finger, or else beside it: in small type a space is narrower than any finger. */
  private wordNear(): [Cell, Cell] | null {
    const { x, y } = this.from;
    for (const by of [0, -NEAR_PX / 2, NEAR_PX / 2, -NEAR_PX, NEAR_PX]) {
      const word = wordAt(this.terminal, cellAt(this.terminal, x + by, y));
      if (word) return word;
    }
    return null;
  }

  private hold(): void {
    this.word = this.wordNear() ?? "none";
    navigator.vibrate?.(10);
    this.terminal.clearSelection();
    if (this.word !== "none") selectBetween(this.terminal, ...this.word);
  }

  /** What is selected goes on to the finger, by way of the word that was held. */
  private stretch(touch: Touch): void {
    if (!this.word || this.word === "none") return;
    const box = this.terminal.element?.getBoundingClientRect();
    const beyond = !box ? 0 : touch.clientY < box.top + EDGE_PX ? -1 : touch.clientY > box.bottom - EDGE_PX ? 1 : 0;
    if (beyond && this.terminal.buffer.active.type === "normal") this.terminal.scrollLines(beyond);
    const at = cellAt(this.terminal, touch.clientX, touch.clientY);
    const [first, last] = this.word;
    if (Math.hypot(touch.clientX - this.from.x, touch.clientY - this.from.y) <= TREMBLE_PX) {
      selectBetween(this.terminal, first, last);
      return;
    }
    const before = at.row < first.row || (at.row === first.row && at.col < first.col);
    selectBetween(this.terminal, at, before ? last : first);
    if (!before && (at.row < last.row || (at.row === last.row && at.col < last.col))) selectBetween(this.terminal, first, last);
  }

  private begin(event: TouchEvent): void {
    cancelAnimationFrame(this.gliding);
    this.speed = this.rest = 0;
    this.word = null;
    const touch = event.touches[0];
    this.note(touch, event.timeStamp);
    clearTimeout(this.holding);
    if (!touch || event.touches.length > 1) return;
    this.from = { x: touch.clientX, y: touch.clientY };
    this.holding = window.setTimeout(() => this.hold(), HOLD_MS);
  }

  private note(touch: Touch | undefined, at: number): void {
    this.last = touch ? { x: touch.clientX, y: touch.clientY, at } : null;
  }

  private move(event: TouchEvent): void {
    const touch = event.touches[0];
    if (!this.last || !touch || event.touches.length > 1) return;
    if (this.word) {
      this.stretch(touch);
      event.preventDefault();
      return;
    }
    if (Math.hypot(touch.clientX - this.from.x, touch.clientY - this.from.y) > TREMBLE_PX) clearTimeout(this.holding);
    const [dx, dy] = [this.last.x - touch.clientX, this.last.y - touch.clientY];
    const passed = Math.max(1, event.timeStamp - this.last.at);
    this.speed = 0.6 * Math.max(-FASTEST, Math.min(FASTEST, dy / passed)) + 0.4 * this.speed;
    this.note(touch, event.timeStamp);
    const left = this.frame.pan(dx, dy);
    this.scroll(left, touch);
    event.preventDefault();
  }

  /** Move by so many pixels through what is above or below; false where there is no more. */
  private scroll(dy: number, touch?: Touch): boolean {
    if (!dy) return true;
    this.rest += dy / this.frame.lineHeight;
    const lines = Math.trunc(this.rest);
    this.rest -= lines;
    if (!lines) return true;
    const { terminal } = this;
    if (terminal.buffer.active.type === "normal") {
      noteScroll(terminal);
      const before = terminal.buffer.active.viewportY;
      terminal.scrollLines(lines);
      return terminal.buffer.active.viewportY !== before;
    }
    if (terminal.modes.mouseTrackingMode !== "none") this.turnWheel(lines, touch);
    else {
      const arrow = `\x1b${terminal.modes.applicationCursorKeysMode ? "O" : "["}${lines < 0 ? "A" : "B"}`;
      this.type(arrow.repeat(Math.abs(lines)));
    }
    return true;
  }

  /** The emulator knows how the program wants to be told. */
  private turnWheel(lines: number, touch?: Touch): void {
    for (let turn = Math.abs(lines); turn > 0; turn--)
      this.terminal.element?.dispatchEvent(
        new WheelEvent("wheel", { deltaY: Math.sign(lines), deltaMode: WheelEvent.DOM_DELTA_LINE, clientX: touch?.clientX, clientY: touch?.clientY, bubbles: true, cancelable: true }),
      );
  }

  private end(event: TouchEvent): void {
    const at = event.timeStamp;
    const lasted = this.last;
    this.last = null;
    clearTimeout(this.holding);
    if (this.word) {
      // No click follows, which would take the selection away and bring up the keyboard.
      event.preventDefault();
      const box = this.terminal.element?.getBoundingClientRect();
      this.onHold(box !== undefined && this.from.y > box.top + box.height / 2);
      this.word = null;
      return;
    }
    if (lasted && Math.hypot(lasted.x - this.from.x, lasted.y - this.from.y) <= TREMBLE_PX) this.onHold(null);
    const rested = lasted ? at - lasted.at : Infinity;
    if (rested > REST_MS || STILL.matches || this.terminal.buffer.active.type !== "normal") return;
    let before = performance.now();
    const glide = (now: number): void => {
      const passed = Math.max(0, now - before);
      before = now;
      this.speed *= Math.exp(-passed / FADE_MS);
      if (Math.abs(this.speed) < SLOWEST || !this.scroll(this.frame.pan(0, this.speed * passed))) return;
      this.gliding = requestAnimationFrame(glide);
    };
    this.gliding = requestAnimationFrame(glide);
  }
}
