// Selecting with a finger: a word that was held, handles that move its ends, and what can be done with it.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Terminal } from "@xterm/xterm";
import "./pick.css";
import { copyText } from "./clipboard";
import { tell } from "./store";
import { emulators, pasteText } from "./terminal";

/** A cell by its column and its row among all that are there. */
export interface Cell {
  col: number;
  row: number;
}

/** Where a finger was held; until it is done with, there is a bar. */
export const held = signal<{ session: string; low: boolean } | null>(null);

const SEPARATORS = " \t\u00a0()[]{}<>'\"`|;,";

export function cellAt(terminal: Terminal, x: number, y: number): Cell {
  const box = terminal.element?.querySelector(".xterm-screen")?.getBoundingClientRect() ?? new DOMRect(0, 0, 1, 1);
  const inside = (at: number, size: number, count: number): number => Math.max(0, Math.min(count - 1, Math.floor((at / size) * count)));
  return { col: inside(x - box.left, box.width, terminal.cols), row: terminal.buffer.active.viewportY + inside(y - box.top, box.height, terminal.rows) };
}

/** Select from one cell to another, both included, whichever is first. */
export function selectBetween(terminal: Terminal, one: Cell, other: Cell): void {
  const place = (cell: Cell): number => cell.row * terminal.cols + cell.col;
  const [from, until] = place(one) <= place(other) ? [one, other] : [other, one];
  terminal.select(from.col, from.row, place(until) - place(from) + 1);
}

/** First and last cell of the word at a cell, also where the end of a row breaks it; null where there is none. */
export function wordAt(terminal: Terminal, at: Cell): [Cell, Cell] | null {
  const buffer = terminal.buffer.active;
  const { cols } = terminal;
  const isWord = ({ col, row }: Cell): boolean => {
    const cell = buffer.getLine(row)?.getCell(col);
    if (!cell) return false;
    return cell.getWidth() === 0 || (cell.getChars() !== "" && !SEPARATORS.includes(cell.getChars()));
  };
  const step = ({ col, row }: Cell, by: number): Cell | null => {
    if (col + by >= 0 && col + by < cols) return { col: col + by, row };
    const wraps = buffer.getLine(by > 0 ? row + 1 : row)?.isWrapped;
    return wraps ? { col: by > 0 ? 0 : cols - 1, row: row + by } : null;
  };
  const reach = (by: number): Cell => {
    let here = at;
    for (let next = step(here, by); next && isWord(next); next = step(here, by)) here = next;
    return here;
  };
  return isWord(at) ? [reach(-1), reach(1)] : null;
}

export function letGo(session: string): void {
  emulators.get(session)?.clearSelection();
  if (held.peek()?.session === session) held.value = null;
}

/** The two ends of what is selected, to be moved; they lie over the picture. */
export function Handles(props: { name: string }) {
  const shown = held.value?.session === props.name;
  const [, draw] = useState(0);
  const terminal = emulators.get(props.name);
  useEffect(() => {
    if (!shown || !terminal) return;
    const again = (): void => draw((old) => old + 1);
    const stops = [terminal.onRender(again), terminal.onSelectionChange(again)];
    return () => stops.forEach((stop) => stop.dispose());
  }, [shown, terminal]);
  const range = shown ? terminal?.getSelectionPosition() : undefined;
  const screen = terminal?.element?.querySelector<HTMLElement>(".xterm-screen");
  if (!terminal || !range || !screen) return null;
  const [width, height] = [screen.offsetWidth / terminal.cols, screen.offsetHeight / terminal.rows];
  const last: Cell = { col: Math.max(0, range.end.x - 1), row: range.end.y };
  const first: Cell = { col: range.start.x, row: range.start.y };
  const handle = (kind: "first" | "last", own: Cell, other: Cell) => {
    const row = own.row - terminal.buffer.active.viewportY;
    if (row < 0 || row >= terminal.rows) return null;
    const drag = (event: TouchEvent): void => {
      event.stopPropagation();
      event.preventDefault();
      const touch = event.touches[0];
      // The finger is below the row that it means.
      if (touch) selectBetween(terminal, other, cellAt(terminal, touch.clientX, touch.clientY - height));
    };
    const col = kind === "first" ? own.col : own.col + 1;
    return <i class={`handle ${kind}`} style={{ left: `${col * width}px`, top: `${(row + 1) * height}px` }} onTouchStart={drag} onTouchMove={drag} onTouchEnd={(event) => (event.stopPropagation(), event.preventDefault())} />;
  };
  return (
    <>
      {handle("first", first, last)}
      {handle("last", last, first)}
    </>
  );
}

/** What can be done with it, at the end of the terminal that it is not in. */
export function PickBar(props: { name: string; low: boolean }) {
  const { name } = props;
  if (held.value?.session !== name || held.value.low !== props.low) return null;
  const terminal = emulators.get(name);
  const copy = async (): Promise<void> => {
    const text = terminal?.getSelection() ?? "";
    if (!text) return;
    if (await copyText(text)) tell("Copied.");
    else tell("The browser did not let the clipboard be written.", undefined, true);
    letGo(name);
  };
  const paste = async (): Promise<void> => {
    letGo(name);
    try {
      pasteText(name, await navigator.clipboard.readText());
    } catch {
      tell("The browser did not let the clipboard be read.", "Paste into the line below instead.", true);
    }
  };
  const stay = (event: Event): void => event.preventDefault();
  return (
    <div class={`pick${props.low ? "" : " high"}`}>
      <div role="toolbar" aria-label="Selection" onPointerDown={stay} onMouseDown={stay}>
        <button disabled={!terminal?.hasSelection()} onClick={() => void copy()}>
          Copy
        </button>
        <button onClick={() => (terminal?.selectAll(), (held.value = { session: name, low: props.low }))}>Select all</button>
        <button onClick={() => void paste()}>Paste</button>
        <button aria-label="Leave the selection" onClick={() => letGo(name)}>
          ×
        </button>
      </div>
    </div>
  );
}
