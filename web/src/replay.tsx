// Time travel: the recording of a session in an emulator of its own, with a scrubber.
import { Terminal } from "@xterm/xterm";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { getText, sessionPath } from "./api";
import { attempt, selected, view } from "./store";
import { fontSize, terminalFont, terminalTheme } from "./theme";

interface Cast {
  rows: number;
  cols: number;
  events: [number, string, string][];
  length: number;
}

const STEP_S = 0.01;

function parse(text: string): Cast {
  const lines = text.split("\n").filter(Boolean);
  const head = JSON.parse(lines[0] ?? "{}") as { width?: number; height?: number };
  const events = lines.slice(1).map((line) => JSON.parse(line) as [number, string, string]);
  // Whole steps of the scrubber, or its right end would lie before the last event.
  const length = Math.ceil((events.at(-1)?.[0] ?? 0) / STEP_S) * STEP_S;
  return { rows: head.height ?? 24, cols: head.width ?? 80, events, length: Number(length.toFixed(2)) };
}

export function Replay() {
  const name = selected.value;
  const holder = useRef<HTMLDivElement>(null);
  const player = useRef<{ seek: (at: number) => void } | null>(null);
  const [cast, setCast] = useState<Cast | null>(null);
  const [at, setAt] = useState(0);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);

  useEffect(() => {
    setCast(null);
    setAt(0);
    if (name) void attempt(async () => setCast(parse(await getText(sessionPath(name, "/recording?format=asciicast-v2")))));
  }, [name]);

  // With the scrubber, not after the next frame: a move that comes in between would be taken back.
  useLayoutEffect(() => {
    if (!cast || !holder.current) return;
    const terminal = new Terminal({
      rows: cast.rows,
      cols: cast.cols,
      fontFamily: terminalFont(),
      fontSize: fontSize.peek(),
      theme: terminalTheme(),
      disableStdin: true,
      scrollback: 1000,
    });
    terminal.open(holder.current);
    let done = 0;
    const seek = (to: number): void => {
      // Backwards means from the start: the emulator cannot forget.
      if (done > 0 && (cast.events[done - 1]?.[0] ?? 0) > to) {
        terminal.reset();
        terminal.resize(cast.cols, cast.rows);
        done = 0;
      }
      let text = "";
      for (; done < cast.events.length; done++) {
        const [time, kind, data] = cast.events[done] as [number, string, string];
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
    seek(0);
    return () => {
      player.current = null;
      terminal.dispose();
    };
  }, [cast]);

  useEffect(() => player.current?.seek(at), [at]);

  useEffect(() => {
    if (!playing || !cast) return;
    let last = performance.now();
    let frame = requestAnimationFrame(function step(now: number) {
      const passed = ((now - last) / 1000) * speed;
      last = now;
      setAt((old) => {
        const next = Math.min(old + passed, cast.length);
        if (next >= cast.length) setPlaying(false);
        return next;
      });
      frame = requestAnimationFrame(step);
    });
    return () => cancelAnimationFrame(frame);
  }, [playing, cast, speed]);

  if (!name) return <p class="soft pad">Choose a session to replay.</p>;
  return (
    <section class="replay">
      <header class="bar">
        <h1>
          Replay of <bdi>{name}</bdi>
        </h1>
        <span class="push" />
        <button onClick={() => (view.value = "single")}>Back to live</button>
      </header>
      <div class="film" ref={holder} />
      <footer class="scrubber">
        <button class="primary" onClick={() => setPlaying(!playing)} disabled={!cast}>
          {playing ? "Pause" : "Play"}
        </button>
        <input
          type="range"
          aria-label="Time"
          min={0}
          max={cast?.length ?? 0}
          step={STEP_S}
          value={at}
          onInput={(event) => setAt(Number(event.currentTarget.value))}
        />
        <span class="mono time">
          {clock(at)} / {clock(cast?.length ?? 0)}
        </span>
        <select aria-label="Speed" value={speed} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
          {[0.5, 1, 2, 5, 10].map((s) => (
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
