// A finger on a terminal: it goes through earlier lines and glides on, moves a picture that is larger than its room, and turns the wheel of full-screen programs.
import type { Terminal } from "@xterm/xterm";
import type { Frame } from "./frame";
import { noteScroll } from "./viewer";

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

  constructor(
    room: HTMLElement,
    private readonly terminal: Terminal,
    private readonly frame: Frame,
    private readonly type: (data: string) => void,
  ) {
    const on = (kind: "touchstart" | "touchmove" | "touchend" | "touchcancel", hear: (event: TouchEvent) => void): void =>
      room.addEventListener(kind, hear, { passive: kind !== "touchmove" });
    on("touchstart", (event) => this.begin(event));
    on("touchmove", (event) => this.move(event));
    on("touchend", (event) => this.end(event.timeStamp));
    on("touchcancel", () => (this.last = null));
  }

  private begin(event: TouchEvent): void {
    cancelAnimationFrame(this.gliding);
    this.speed = this.rest = 0;
    this.note(event.touches[0], event.timeStamp);
  }

  private note(touch: Touch | undefined, at: number): void {
    this.last = touch ? { x: touch.clientX, y: touch.clientY, at } : null;
  }

  private move(event: TouchEvent): void {
    const touch = event.touches[0];
    if (!this.last || !touch || event.touches.length > 1) return;
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

  private end(at: number): void {
    const lasted = this.last;
    this.last = null;
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
