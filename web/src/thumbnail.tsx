// A small live picture of a screen: one pixel block per cell, drawn only while it can be seen.
import { useEffect, useRef } from "preact/hooks";
import type { IndexedColor, LineSpan, RgbColor, Screen } from "./api";
import { Channel, type Event } from "./channel";
import { sessionPath } from "./api";
import { palette, themeTick } from "./theme";

const CELL_W = 2;
const CELL_H = 4;

function cssColor(color: IndexedColor | RgbColor | null | undefined, fallback: string): string {
  if (!color) return fallback;
  if ("rgb" in color) return `rgb(${color.rgb.r},${color.rgb.g},${color.rgb.b})`;
  const n = color.indexed;
  if (n < 16) return palette()[n] ?? fallback;
  if (n >= 232) return `rgb(${8 + (n - 232) * 10},${8 + (n - 232) * 10},${8 + (n - 232) * 10})`;
  const step = (v: number): number => (v === 0 ? 0 : 55 + v * 40);
  const i = n - 16;
  return `rgb(${step(Math.floor(i / 36))},${step(Math.floor(i / 6) % 6)},${step(i % 6)})`;
}

interface Ink {
  ground: string;
  text: string;
}

/** Asked once per picture: it may make the browser compute styles anew. */
function readInk(): Ink {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  return { ground: read("--terminal-ground"), text: read("--terminal-text") };
}

function drawRow(context: CanvasRenderingContext2D, row: number, spans: LineSpan[], cols: number, { ground, text }: Ink): void {
  context.fillStyle = ground;
  context.fillRect(0, row * CELL_H, cols * CELL_W, CELL_H);
  let col = 0;
  for (const span of spans) {
    const [fg, bg] = span.inverse
      ? [cssColor(span.bg, ground), cssColor(span.fg, text)]
      : [cssColor(span.fg, text), span.bg ? cssColor(span.bg, ground) : null];
    const characters = [...span.text];
    if (bg) {
      context.fillStyle = bg;
      context.fillRect(col * CELL_W, row * CELL_H, characters.length * CELL_W, CELL_H);
    }
    context.fillStyle = fg;
    // One block per word.
    let start = -1;
    for (let i = 0; i <= characters.length; i++) {
      const blank = i === characters.length || characters[i] === " ";
      if (!blank && start < 0) start = i;
      else if (blank && start >= 0) {
        context.fillRect((col + start) * CELL_W, row * CELL_H + 1, (i - start) * CELL_W, CELL_H - 2);
        start = -1;
      }
    }
    col += characters.length;
  }
}

export function Thumbnail(props: { name: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current as HTMLCanvasElement;
    const context = element.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    let channel: Channel | null = null;
    let rows: LineSpan[][] = [];
    let cols = 80;
    const drawAll = (): void => {
      element.width = cols * CELL_W;
      element.height = Math.max(1, rows.length) * CELL_H;
      const ink = readInk();
      context.fillStyle = ink.ground; // before there is a picture, too: it would be black
      context.fillRect(0, 0, element.width, element.height);
      rows.forEach((spans, row) => drawRow(context, row, spans, cols, ink));
    };
    const hear = (event: Event): void => {
      if (event.event === "sync") {
        const screen = event.screen as Screen;
        rows = screen.lines as LineSpan[][];
        cols = screen.cols;
        drawAll();
      } else if (event.event === "diff") {
        const ink = readInk();
        for (const change of event.rows as { row: number; line: LineSpan[] }[]) {
          rows[change.row] = change.line;
          drawRow(context, change.row, change.line, cols, ink);
        }
      }
    };
    const observer = new IntersectionObserver(([seen]) => {
      if (seen?.isIntersecting && channel === null) {
        channel = new Channel(sessionPath(props.name, "/ws/json"));
        const opened = channel;
        opened.onEvent = hear;
        opened.onOpen = () => void opened.request("subscribe", { events: ["diffs"], interval_ms: 500 }).catch(() => undefined);
        opened.open();
      } else if (!seen?.isIntersecting && channel !== null) {
        channel.close();
        channel = null;
      }
    });
    observer.observe(element);
    const stop = themeTick.subscribe(drawAll);
    return () => {
      observer.disconnect();
      channel?.close();
      stop();
    };
  }, [props.name]);
  return <canvas class="thumbnail" ref={canvas} width={160} height={96} aria-hidden="true" />;
}
