// How a session of any size is shown in a given room: smaller type first, then a part of it that follows the cursor.
import type { Terminal } from "@xterm/xterm";
import { USUAL_PX } from "./theme";
import type { Size } from "./viewer";

/** Fingers need no wide scrollbar, and phones are held close: there 80 columns have to fit. */
export const TOUCHED = matchMedia("(pointer: coarse)").matches;
/** Type smaller than this is not read; a larger session is panned instead. */
export const SMALLEST_PX = TOUCHED ? 7 : 8;
/** On a phone rows are panned before their type gets smaller than this: a finger goes through them anyway, and held sideways there are few. */
const ROWS_SMALLEST_PX = TOUCHED ? 11 : SMALLEST_PX;
export const SCROLLBAR_PX = TOUCHED ? 4 : 14;
const PAD_PX = 8;
/** Left of the picture: beside a pointer there is room for the marks of commands. */
const GUTTER_PX = TOUCHED ? 8 : 12;
/** Cells that stay visible beside the cursor. */
const MARGIN = 4;

interface Cell {
  width: number;
  height: number;
}

export class Frame {
  private base: { font: string; cell: Cell } | null = null;
  private x = 0;
  private y = 0;
  private moved = false;
  /** Pixels at the top that something lies over: the picture may begin below. */
  private covered = 0;
  /** A place is to stay in sight. */
  private holds = false;
  private placed = "";
  private wanted: Size | null = null;

  constructor(
    private readonly room: HTMLElement,
    private readonly picture: HTMLElement,
    private readonly terminal: Terminal,
    private readonly onRoom: (size: Size) => void,
  ) {
    terminal.onCursorMove(() => {
      if (this.holds) return;
      this.moved = false;
      this.follow();
    });
    room.addEventListener(
      "wheel",
      (event) => {
        const dx = event.shiftKey ? event.deltaY : event.deltaX;
        if (!dx || !this.over.x) return;
        this.pan(dx, 0);
        event.preventDefault();
        event.stopPropagation();
      },
      { passive: false, capture: true },
    );
  }

  get lineHeight(): number {
    return this.cell()?.height ?? 16;
  }

  private get screen(): HTMLElement | null {
    return this.picture.querySelector<HTMLElement>(".xterm-screen");
  }

  private get space(): Cell {
    return { width: this.room.clientWidth - GUTTER_PX - SCROLLBAR_PX, height: this.room.clientHeight - PAD_PX };
  }

  /** Size of a character in the type that the person chose; measured when the emulator has that type. */
  private measure(fontSize: number): Cell | null {
    const font = `${this.terminal.options.fontFamily} ${fontSize} ${devicePixelRatio}`;
    if (this.base?.font !== font) {
      this.terminal.options.fontSize = fontSize;
      const cell = this.cell();
      if (!cell) return null;
      this.base = { font, cell };
    }
    return this.base.cell;
  }

  private cell(): Cell | null {
    const screen = this.screen;
    if (!screen || screen.offsetWidth === 0) return null;
    return { width: screen.offsetWidth / this.terminal.cols, height: screen.offsetHeight / this.terminal.rows };
  }

  /** Lay out anew: after another room, another size of the session, or another type. */
  place(fontSize: number): void {
    if (this.room.clientWidth === 0) return;
    const cell = this.measure(fontSize);
    if (!cell) return;
    const { width, height } = this.space;
    const side = (space: number, one: number): number => Math.max(1, Math.min(1000, Math.floor(space / one)));
    const fits = { rows: side(height, cell.height), cols: side(width, cell.width) };
    if (fits.rows !== this.wanted?.rows || fits.cols !== this.wanted.cols) {
      this.wanted = fits;
      this.onRoom(fits);
    }
    const { rows, cols } = this.terminal;
    const scaled = (scale: number, least: number): number =>
      scale >= 1 ? fontSize : Math.max(Math.min(least, fontSize), Math.floor(fontSize * scale * 4) / 4);
    // Who wants larger type than usual gets it in a wide session, too, and pans it.
    const least = TOUCHED ? Math.max(SMALLEST_PX, SMALLEST_PX + fontSize - USUAL_PX) : SMALLEST_PX;
    const size = Math.min(scaled(width / (cols * cell.width), least), scaled(height / (rows * cell.height), ROWS_SMALLEST_PX));
    if (this.terminal.options.fontSize !== size) this.terminal.options.fontSize = size;
    const needed = (this.screen?.offsetWidth ?? 0) + SCROLLBAR_PX;
    // As wide as the room, so that the scrollbar is at its edge and not in the middle.
    this.picture.style.width = `${Math.max(needed, this.room.clientWidth - GUTTER_PX)}px`;
    this.picture.style.height = `${Math.max(this.screen?.offsetHeight ?? 0, this.room.clientHeight - PAD_PX)}px`;
    this.room.classList.toggle("smaller", cols < fits.cols || rows < fits.rows);
    if (this.placed !== `${rows}x${cols}`) this.moved = false; // another size: what was moved to may not be there
    this.placed = `${rows}x${cols}`;
    this.follow();
  }

  private get over(): { x: number; y: number } {
    const screen = this.screen;
    const { width, height } = this.space;
    return { x: Math.max(0, (screen?.offsetWidth ?? 0) - width), y: Math.max(0, (screen?.offsetHeight ?? 0) - height) };
  }

  /** Keep the cursor in sight. */
  follow(): void {
    const cell = this.cell();
    if (!cell || this.moved) return;
    const { cursorX, cursorY } = this.terminal.buffer.active;
    const { width, height } = this.space;
    const reach = (at: number, one: number, from: number, room: number): number =>
      Math.min(Math.max(from, (at + 1 + Math.min(MARGIN, at)) * one - room), Math.max(0, (at - MARGIN) * one));
    this.x = reach(cursorX, cell.width, cursorX * cell.width < width / 2 ? 0 : this.x, width);
    this.y = reach(cursorY, cell.height, this.y, height);
    this.show();
  }

  /** Move the part that is shown. Returns how far up or down it could not be moved, because there the session ends. */
  pan(dx: number, dy: number): number {
    const { x, y } = this.over;
    if (!(dx && x) && !(dy && y)) return dy;
    this.moved = true;
    const wanted = this.y + dy;
    this.x += dx;
    this.y = wanted;
    this.show();
    return wanted - this.y;
  }

  /** Bring a place of the screen into sight, below `covered` pixels that something lies over. */
  reveal(row: number, col: number, covered: number): void {
    const cell = this.cell();
    if (!cell) return;
    this.covered = covered;
    this.holds = true;
    const { width, height } = this.space;
    const [left, top] = [col * cell.width, row * cell.height];
    this.moved = true;
    this.x = Math.min(Math.max(this.x, left + MARGIN * cell.width - width), Math.max(0, left - MARGIN * cell.width));
    if (top - this.y < covered || top + cell.height - this.y > height) this.y = top - (covered + height) / 2;
    this.show();
  }

  /** Nothing lies over it any more. */
  uncover(): void {
    this.covered = 0;
    this.holds = false;
    this.moved = false;
    this.follow();
  }

  private show(): void {
    const over = this.over;
    this.x = Math.max(0, Math.min(this.x, over.x));
    this.y = Math.max(-this.covered, Math.min(this.y, over.y));
    // A shade at each edge beyond which the session goes on.
    this.picture.style.setProperty("--beyond", `${Math.round(over.x - this.x)}px`);
    this.room.classList.toggle("more-left", this.x > 1);
    this.room.classList.toggle("more-right", this.x < over.x - 1);
    this.picture.style.transform = this.x || this.y ? `translate(${-Math.round(this.x)}px, ${-Math.round(this.y)}px)` : "";
  }
}

/** A tile: the whole width of the session, and of its rows those at the cursor. */
export function shrink(room: HTMLElement, terminal: Terminal): void {
  const screen = room.querySelector<HTMLElement>(".xterm-screen");
  if (!screen || !terminal.element || screen.offsetWidth === 0) return;
  const height = room.clientHeight - 12;
  const scale = Math.min(1, (room.clientWidth - 16) / screen.offsetWidth);
  const row = (screen.offsetHeight / terminal.rows) * scale;
  const used = terminal.buffer.active.type === "alternate" ? terminal.rows : terminal.buffer.active.cursorY + 1;
  const up = Math.max(0, Math.min(used * row - height, terminal.rows * row - height));
  terminal.element.style.transformOrigin = "0 0";
  terminal.element.style.transform = `translateY(${-up}px) scale(${scale})`;
}
