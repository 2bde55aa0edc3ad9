// Time travel: the recording of a session in an emulator of its own, with a scrubber that has a tick per command.
import { Terminal } from "@xterm/xterm";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { getText, listCommands, sessionPath, type CommandInfo } from "./api";
import { SCROLLBAR_PX, SMALLEST_PX } from "./frame";
import { attempt, selected, view } from "./store";
import { fontSize, terminalFont, terminalTheme } from "./theme";

interface Cast {
  rows: number;
  cols: number;
  events: [number, string, string][];
  length: number;
  /** When it began, in seconds since 1970, rounded down. */
  began: number;
}

interface Tick {
  at: number;
  command: string;
  bad: boolean;
}

interface Film extends Cast {
  /** Where each command began. */
  ticks: Tick[];
}

/** How it is played. */
interface Play {
  at: number;
  playing: boolean;
  speed: number;
}

const STEP_S = 0.01;
const NEAR_S = 1e-4;
const MOST_EARLY = 32;
/** Nothing is printed for longer than this: a silence. */
const SILENCE_S = 1;
const PAD_PX = 12;
const SPEEDS = [0.5, 1, 2, 5, 10];
const EXPORTS: [format: string, ending: string, label: string][] = [
  ["asciicast-v2", "cast", "asciicast"],
  ["txt", "txt", "Text"],
  ["html", "html", "HTML"],
  ["svg-animated", "svg", "Animated SVG"],
];

function parse(text: string): Cast {
  const lines = text.split("\n").filter(Boolean);
  const head = JSON.parse(lines[0] ?? "{}") as { width?: number; height?: number; timestamp?: number };
  const events = lines.slice(1).map((line) => JSON.parse(line) as [number, string, string]);
  // Whole steps of the scrubber, or its right end would lie before the last event.
  const length = Math.ceil((events.at(-1)?.[0] ?? 0) / STEP_S) * STEP_S;
  return { rows: head.height ?? 24, cols: head.width ?? 80, events, length: Number(length.toFixed(2)), began: head.timestamp ?? 0 };
}

/** Where commands began: at the shell's own marks, which are exact, else by the clock. */
function ticksOf(cast: Cast, commands: CommandInfo[]): Tick[] {
  const marks = cast.events.filter(([, kind, data]) => kind === "o" && data.includes("\x1b]133;C")).map(([at]) => at);
  const exact = marks.length >= commands.length ? marks.slice(marks.length - commands.length) : null;
  return commands.flatMap((command, index) => {
    const at = exact ? exact[index] : command.started === null ? undefined : command.started - cast.began;
    if (at === undefined || at > cast.length + 1) return [];
    return [{ at: Math.max(0, Math.min(at, cast.length)), command: command.command, bad: Boolean(command.exit_code) }];
  });
}

/** What something that the person does makes of how it is played: of what they did before, which need not have been drawn yet. */
type Move = (now: Play, film: Film) => Play;

const play: Move = (now, film) => ({ ...now, at: !now.playing && now.at >= film.length ? 0 : now.at, playing: !now.playing });
const goTo = (at: number): Move => (now) => ({ ...now, at });
/** To the next thing that was printed, or the last before now. */
const stepEvent = (by: 1 | -1): Move => (now, film) => {
  const times = film.events.map(([time]) => time);
  const at = by > 0 ? (times.find((time) => time > now.at) ?? film.length) : (times.findLast((time) => time < now.at - NEAR_S) ?? 0);
  return { ...now, at, playing: false };
};
const stepCommand = (by: 1 | -1): Move => (now, film) => {
  const times = film.ticks.map((tick) => tick.at);
  return { ...now, at: by > 0 ? (times.find((time) => time > now.at + NEAR_S) ?? film.length) : (times.findLast((time) => time < now.at - NEAR_S) ?? 0) };
};
const faster = (by: 1 | -1): Move => (now) => ({ ...now, speed: SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(now.speed) + by))] ?? 1 });
const MOVES: Record<string, Move> = {
  " ": play,
  ".": stepEvent(1),
  ",": stepEvent(-1),
  n: stepCommand(1),
  p: stepCommand(-1),
  "+": faster(1),
  "-": faster(-1),
  Home: goTo(0),
  End: (now, film) => ({ ...now, at: film.length }),
};

async function save(name: string, format: string, ending: string, begin: number): Promise<void> {
  const from = begin > 0 ? `&from_s=${begin.toFixed(3)}` : "";
  const text = await getText(sessionPath(name, `/recording?format=${format}${from}`));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text]));
  link.download = `${name}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Smaller type where the recording is wider than the room; what is too small to be read is scrolled instead. */
function fitWidth(terminal: Terminal, room: HTMLElement): void {
  const screen = room.querySelector<HTMLElement>(".xterm-screen");
  const now = terminal.options.fontSize ?? fontSize.peek();
  if (!screen || screen.offsetWidth === 0) return;
  const scale = (room.clientWidth - 2 * PAD_PX - SCROLLBAR_PX) / screen.offsetWidth;
  const size = Math.min(fontSize.peek(), Math.max(SMALLEST_PX, Math.floor(now * scale * 4) / 4));
  if (Math.abs(size - now) >= 0.25) terminal.options.fontSize = size;
}

export function Replay() {
  const name = selected.value;
  const section = useRef<HTMLElement>(null);
  const menu = useRef<HTMLDetailsElement>(null);
  const holder = useRef<HTMLDivElement>(null);
  const player = useRef<{ seek: (at: number) => void } | null>(null);
  const [film, setFilm] = useState<Film | null>(null);
  const [{ at, playing, speed }, setPlay] = useState<Play>({ at: 0, playing: false, speed: 1 });
  const [skip, setSkip] = useState(true);
  const [fromHere, setFromHere] = useState(false);
  /** What was done before the film was there. It counts when it is. */
  const early = useRef<Move[]>([]);
  const does = (move: Move): void => {
    if (film) setPlay((now) => move(now, film));
    else if (early.current.length < MOST_EARLY) early.current.push(move);
  };

  // At once, not after the next frame: keys count from the first moment.
  useLayoutEffect(() => {
    section.current?.focus();
    setFilm(null);
    setPlay((now) => ({ ...now, at: 0, playing: false }));
    const moves: Move[] = (early.current = []);
    if (!name) return;
    void attempt(async () => {
      const [text, commands] = await Promise.all([getText(sessionPath(name, "/recording?format=asciicast-v2")), listCommands(name).catch(() => [])]);
      if (early.current !== moves) return; // another session was chosen meanwhile
      const cast = parse(text);
      const found = { ...cast, ticks: ticksOf(cast, commands) };
      setPlay((now) => moves.reduce((then, move) => move(then, found), { ...now, at: found.length }));
      setFilm(found);
    });
  }, [name]);

  // With the scrubber, not after the next frame: a move that comes in between would be taken back.
  useLayoutEffect(() => {
    if (!film || !holder.current) return;
    const terminal = new Terminal({
      rows: film.rows,
      cols: film.cols,
      fontFamily: terminalFont(),
      fontSize: fontSize.peek(),
      theme: terminalTheme(),
      disableStdin: true,
      scrollback: 1000,
    });
    terminal.open(holder.current);
    const fit = (): void => fitWidth(terminal, holder.current as HTMLDivElement);
    fit();
    const resized = terminal.onResize(fit);
    const observer = new ResizeObserver(fit);
    observer.observe(holder.current);
    let done = 0;
    const seek = (to: number): void => {
      // Backwards means from the start: the emulator cannot forget.
      if (done > 0 && (film.events[done - 1]?.[0] ?? 0) > to) {
        terminal.reset();
        terminal.resize(film.cols, film.rows);
        done = 0;
      }
      let text = "";
      for (; done < film.events.length; done++) {
        const [time, kind, data] = film.events[done] as [number, string, string];
        if (time > to) break;
        if (kind === "o") text += data;
        else if (kind === "r") {
          terminal.write(text);
          text = "";
          const [cols, rows] = data.split("x").map(Number);
          if (cols && rows) terminal.resize(cols, rows);
        }
      }
      terminal.write(text);
    };
    player.current = { seek };
    seek(at);
    return () => {
      player.current = null;
      observer.disconnect();
      resized.dispose();
      terminal.dispose();
    };
  }, [film]);

  useEffect(() => player.current?.seek(at), [at]);

  useEffect(() => {
    if (!playing || !film) return;
    let last = performance.now();
    let frame = requestAnimationFrame(function step(now: number) {
      const passed = ((now - last) / 1000) * speed;
      last = now;
      setPlay((old) => {
        let next = Math.min(old.at + passed, film.length);
        const coming = skip ? film.events.find(([time]) => time > next)?.[0] : undefined;
        if (coming !== undefined && coming - next > SILENCE_S) next = coming - SILENCE_S / 4;
        return { ...old, at: next, playing: old.playing && next < film.length };
      });
      frame = requestAnimationFrame(step);
    });
    return () => cancelAnimationFrame(frame);
  }, [playing, film, speed, skip]);

  const length = film?.length ?? 0;
  const ticks = film?.ticks ?? [];
  const changeSpeed = (to: number): void => setPlay((now) => ({ ...now, speed: to }));
  const closeMenu = (): void => {
    menu.current?.removeAttribute("open");
    section.current?.focus();
  };

  if (!name) return <p class="soft pad">Choose a session to replay.</p>;
  return (
    <section
      class="replay"
      ref={section}
      tabIndex={-1}
      aria-label="Replay"
      onKeyDown={(event) => {
        const leaves = event.key === "Escape";
        const move = MOVES[event.key];
        const own = event.target instanceof HTMLElement && event.target.closest("button, select, summary, input[type=checkbox]");
        if (!(move || leaves) || event.ctrlKey || event.altKey || event.metaKey || (own && event.key === " ")) return;
        event.preventDefault();
        if (move) does(move);
        else if (menu.current?.open) closeMenu();
        else view.value = "single";
      }}
    >
      <header class="bar">
        <h1>
          Replay of <bdi>{name}</bdi>
        </h1>
        <span class="push" />
        <details ref={menu} class="menu" onClick={(event) => event.target instanceof HTMLButtonElement && closeMenu()}>
          <summary>Export</summary>
          <div>
            <label class="soft nowrap">
              <input type="checkbox" checked={fromHere} onChange={(event) => setFromHere(event.currentTarget.checked)} /> From here ({clock(at)})
            </label>
            {EXPORTS.map(([format, ending, label]) => (
              <button key={format} onClick={() => void attempt(() => save(name, format, ending, fromHere ? at : 0))}>
                {label}
              </button>
            ))}
          </div>
        </details>
        <button class="not-phone" onClick={() => (view.value = "single")}>
          Back to live
        </button>
      </header>
      <div class="film" ref={holder} />
      <footer class="scrubber">
        <button title="Previous command (P)" aria-label="Previous command" disabled={!film} onClick={() => does(stepCommand(-1))}>
          <svg width="14" height="14" viewBox="0 0 14 14" fill="currentColor" aria-hidden="true">
            <path d="M2 2h2v10H2zM12 2v10L5 7z" />
          </svg>
        </button>
        <button class="primary" title="Space" onClick={() => does(play)} disabled={!film}>
          {playing ? "Pause" : "Play"}
        </button>
        <button title="Next command (N)" aria-label="Next command" disabled={!film} onClick={() => does(stepCommand(1))}>
          <svg width="14" height="14" viewBox="0 0 14 14" fill="currentColor" aria-hidden="true">
            <path d="M10 2h2v10h-2zM2 2v10l7-5z" />
          </svg>
        </button>
        <div class="track">
          <input
            type="range"
            aria-label="Time"
            min={0}
            max={length}
            step={STEP_S}
            value={at}
            onInput={(event) => does(goTo(Number(event.currentTarget.value)))}
          />
          <div class="ticks">
            {ticks.map((tick, index) => (
              <button
                key={index}
                class={tick.bad ? "bad" : ""}
                style={{ left: `${length ? (tick.at / length) * 100 : 0}%` }}
                title={`${clock(tick.at)} ${tick.command}`}
                aria-label={`Go to ${tick.command}`}
                tabIndex={-1}
                onClick={() => does(goTo(tick.at))}
              />
            ))}
          </div>
        </div>
        <span class="mono time">
          {clock(at)} / {clock(length)}
        </span>
        <label class="soft nowrap">
          <input type="checkbox" checked={skip} onChange={(event) => setSkip(event.currentTarget.checked)} /> Skip silences
        </label>
        <select aria-label="Speed" value={speed} onChange={(event) => changeSpeed(Number(event.currentTarget.value))}>
          {SPEEDS.map((s) => (
            <option key={s} value={s}>
              {s}×
            </option>
          ))}
        </select>
      </footer>
    </section>
  );
}

function clock(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return `${minutes}:${(seconds % 60).toFixed(1).padStart(4, "0")}`;
}
