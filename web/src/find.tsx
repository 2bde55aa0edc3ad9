// Find in one terminal: over all lines that its server keeps, from where one looks upwards, with a count.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { IDecoration, Terminal } from "@xterm/xterm";
import "./find.css";
import { beginsLater, focusTerminal, loadTerminal, revealLine, uncover } from "./terminal";

interface Match {
  row: number;
  /** Where it begins, and in which cell it ends, which may be some rows below. */
  col: number;
  endRow: number;
  endCol: number;
}

/** Marks of so many matches are drawn, the nearest ones. */
const MARKED = 400;
const REFRESH_MS = 200;

/** A pattern for what was typed; throws what is wrong with it. */
function patternOf(text: string, regex: boolean, exactCase: boolean): RegExp {
  return new RegExp(regex ? text : text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), exactCase ? "gu" : "giu");
}

/** Whether a row goes on in the next: the server sends rows as they are on the screen, so that a full one is taken for broken. */
function goesOn(terminal: Terminal, row: number): boolean {
  const buffer = terminal.buffer.active;
  return buffer.getLine(row + 1)?.isWrapped === true || (buffer.getLine(row)?.getCell(terminal.cols - 1)?.getChars() ?? "").trim() !== "";
}

/** The cell of each character of a row. */
function cellsOf(terminal: Terminal, row: number): number[] {
  const line = terminal.buffer.active.getLine(row);
  const cells: number[] = [];
  for (let x = 0; line && x < terminal.cols; x++) {
    const cell = line.getCell(x);
    if (!cell || cell.getWidth() === 0) continue;
    for (let n = Math.max(1, cell.getChars().length); n > 0; n--) cells.push(x);
  }
  return cells;
}

function findAll(terminal: Terminal, pattern: RegExp): Match[] {
  const buffer = terminal.buffer.active;
  const found: Match[] = [];
  for (let row = 0; row < buffer.length; ) {
    const starts: number[] = [];
    let text = "";
    let next = row;
    do {
      starts.push(text.length);
      text += buffer.getLine(next)?.translateToString(true) ?? "";
      next++;
    } while (next < buffer.length && goesOn(terminal, next - 1));
    for (const match of text.matchAll(pattern)) {
      if (match[0] === "") continue;
      const place = (at: number): [number, number] => {
        const part = starts.findLastIndex((start) => start <= at);
        const cells = cellsOf(terminal, row + part);
        return [row + part, cells[at - (starts[part] ?? 0)] ?? 0];
      };
      const [first, col] = place(match.index);
      const [last, end] = place(match.index + match[0].length - 1);
      found.push({ row: first, col, endRow: last, endCol: end });
    }
    row = next;
  }
  return found;
}

/** Marks in the terminal; they move with their lines. */
class Marks {
  private drawn: IDecoration[] = [];

  draw(terminal: Terminal, all: Match[], at: number): void {
    this.clear();
    const cursor = terminal.buffer.active.baseY + terminal.buffer.active.cursorY;
    for (let index = Math.max(0, at - MARKED / 2); index < Math.min(all.length, at + MARKED / 2); index++) {
      const match = all[index] as Match;
      for (let row = match.row; row <= match.endRow; row++) {
        const from = row === match.row ? match.col : 0;
        const to = row === match.endRow ? match.endCol : terminal.cols - 1;
        const marker = terminal.registerMarker(row - cursor);
        const made = marker && terminal.registerDecoration({ marker, x: from, width: to - from + 1, layer: index === at ? "top" : "bottom" });
        made?.onRender((element) => element.classList.add("found", ...(index === at ? ["now"] : [])));
        if (made) this.drawn.push(made);
      }
    }
  }

  clear(): void {
    for (const one of this.drawn.splice(0)) {
      one.marker.dispose();
      one.dispose();
    }
  }
}

export function FindBar(props: { name: string; close: () => void }) {
  const { name } = props;
  const [text, setText] = useState("");
  const [regex, setRegex] = useState(false);
  const [exactCase, setExactCase] = useState(false);
  const [told, setTold] = useState("");
  const [cut, setCut] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const bar = useRef<HTMLFormElement>(null);
  const search = useRef<{ terminal: Terminal; all: Match[]; at: number; pattern: RegExp } | null>(null);
  const marks = useRef(new Marks());
  const turn = useRef(0);

  // Before the next key is pressed, and back to the terminal when it goes.
  useLayoutEffect(() => {
    field.current?.focus();
    return () => {
      marks.current.clear();
      uncover(name);
      focusTerminal(name);
    };
  }, [name]);

  const say = (): void => {
    const now = search.current;
    setCut(now !== null && beginsLater(name));
    if (!now) setTold("");
    else setTold(now.all.length === 0 ? "Nothing found" : `${now.at + 1} of ${now.all.length}`);
  };

  const show = (): void => {
    const now = search.current;
    if (!now) return;
    marks.current.draw(now.terminal, now.all, now.at);
    reveal();
    say();
  };

  const reveal = (): void => {
    const now = search.current;
    const match = now?.all[now.at];
    if (match) revealLine(name, match.row, match.col, bar.current);
  };
  // Also when the room becomes smaller: a phone's keyboard comes up.
  useLayoutEffect(() => {
    const room = bar.current?.closest(".single")?.querySelector(".emulator");
    const observer = new ResizeObserver(reveal);
    if (room) observer.observe(room);
    return () => observer.disconnect();
  }, [name]);

  /** From what is in sight upwards; where there is nothing above, the first below. */
  const begin = async (): Promise<void> => {
    const mine = ++turn.current;
    search.current = null;
    marks.current.clear();
    if (!text) return say();
    let pattern: RegExp;
    try {
      pattern = patternOf(text, regex, exactCase);
    } catch {
      setTold("Not a pattern");
      return;
    }
    const terminal = await loadTerminal(name, true);
    if (!terminal || mine !== turn.current) return;
    const all = findAll(terminal, pattern);
    const last = terminal.buffer.active.viewportY + terminal.rows - 1;
    const above = all.findLastIndex((one) => one.row <= last);
    search.current = { terminal, all, at: Math.max(0, above), pattern };
    show();
  };
  useLayoutEffect(() => void begin(), [text, regex, exactCase, name]);

  // What is printed meanwhile counts, too.
  useLayoutEffect(() => {
    let later = 0;
    let heard: { dispose: () => void } | undefined;
    void loadTerminal(name, false).then((terminal) => {
      heard = terminal?.onWriteParsed(() => {
        clearTimeout(later);
        later = window.setTimeout(() => {
          const now = search.current;
          if (!now) return;
          const before = now.all[now.at];
          // Counted from the end: lines that are trimmed at the top move all rows.
          const all = findAll(now.terminal, now.pattern);
          const same = before ? all.findLastIndex((one) => one.row < before.row || (one.row === before.row && one.col <= before.col)) : all.length - 1;
          search.current = { ...now, all, at: Math.max(0, same) };
          marks.current.draw(now.terminal, all, search.current.at);
          say();
        }, REFRESH_MS);
      });
    });
    return () => {
      clearTimeout(later);
      heard?.dispose();
    };
  }, [name]);

  const step = (by: 1 | -1): void => {
    const now = search.current;
    if (!now || now.all.length === 0) return;
    now.at = (now.at + by + now.all.length) % now.all.length;
    show();
  };
  const stay = (event: Event): void => event.preventDefault();
  return (
    <form
      ref={bar}
      class="find"
      role="search"
      onSubmit={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (event.key === "Escape") props.close();
        else if (event.key === "Enter" && event.target === field.current) step(event.shiftKey ? 1 : -1);
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <input
        ref={field}
        type="text"
        aria-label="Find in this terminal"
        placeholder="Find"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <span class="soft told" role="status">
        {told}
      </span>
      <button type="button" title="Capital and small letters differ" aria-label="Match case" aria-pressed={exactCase} onMouseDown={stay} onClick={() => setExactCase(!exactCase)}>
        Aa
      </button>
      <button type="button" title="What is typed is a pattern" aria-label="Pattern" aria-pressed={regex} onMouseDown={stay} onClick={() => setRegex(!regex)}>
        .*
      </button>
      <button type="button" title="Older match (Enter)" aria-label="Older match" onMouseDown={stay} onClick={() => step(-1)}>
        ↑
      </button>
      <button type="button" title="Newer match (Shift+Enter)" aria-label="Newer match" onMouseDown={stay} onClick={() => step(1)}>
        ↓
      </button>
      <button type="button" title="Close (Esc)" aria-label="Close" onClick={props.close}>
        ×
      </button>
      {cut && (
        <small class="soft cut" role="status">
          Earlier lines are no longer kept.
        </small>
      )}
    </form>
  );
}
