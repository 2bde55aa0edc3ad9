// Commands in the terminal itself: a mark beside each, and around the one that was chosen a frame with what can be done with it.
import { useEffect, useRef, useState } from "preact/hooks";
import { about, commandRow, copyLink, copyOutput, isRunning, standsIn, useCommands } from "./block";
import type { CommandInfo } from "./api";
import { TOUCHED } from "./frame";
import { keysFor } from "./shortcut";
import { block } from "./store";
import { enter, lookThrough, type Sight } from "./terminal";

/** So many pictures long a command is looked for that its list told before its line was drawn. */
const TRIES = 20;
/** Earlier ones have no marks. */
const MOST = 500;

interface Placed {
  command: CommandInfo;
  line: number;
}

const kind = (command: CommandInfo): string => (isRunning(command) ? "running" : command.exit_code === 0 ? "good" : "bad");
const stay = (event: Event): void => event.preventDefault();

/** Numbers of the lines in which the commands were typed, those that are here. They hold until the session numbers its lines anew. */
class Places {
  private epoch: number | undefined;
  private lines = new Map<number, number>();
  private tries = 0;

  constructor(private list: CommandInfo[]) {}

  take(list: CommandInfo[]): void {
    this.list = list;
    this.tries = TRIES;
  }

  look(sight: Sight): Placed[] {
    if (sight.epoch !== this.epoch) {
      this.epoch = sight.epoch;
      this.lines.clear();
      this.tries = TRIES;
    }
    if (this.tries > 0) this.search(sight);
    return this.list.flatMap((command) => {
      const line = this.lines.get(command.id);
      if (line === undefined) return [];
      // What is in sight may have been cleared or drawn over.
      const row = line < sight.top || line >= sight.top + sight.terminal.rows ? null : sight.rowOf(line);
      return row !== null && !standsIn(sight.terminal, row, command) ? [] : [{ command, line }];
    });
  }

  private search(sight: Sight): void {
    const { terminal, rowOf, lineOf } = sight;
    this.tries--;
    const { length, baseY, cursorY } = terminal.buffer.active;
    let below = length;
    let missing = false;
    for (const command of this.list.slice(-MOST).reverse()) {
      const known = this.lines.get(command.id);
      if (known !== undefined) {
        below = rowOf(known) ?? below;
        continue;
      }
      const output = rowOf(command.first_line);
      if (output !== null && output > baseY + cursorY && this.tries > 0) {
        missing = true; // told before it is drawn: a line with its words is that of another command
        continue;
      }
      const row = commandRow(terminal, command, this.list, output, below);
      const line = row === null ? null : lineOf(row);
      missing ||= line === null;
      if (row === null || line === null) continue;
      this.lines.set(command.id, line);
      below = row;
    }
    if (!missing) this.tries = 0;
  }
}

export function Blocks(props: { name: string }) {
  const { name } = props;
  const commands = useCommands(name);
  const places = useRef(new Places([]));
  const [sight, setSight] = useState<{ top: number; rows: number; height: number; placed: Placed[] } | null>(null);
  const chosen = block.value?.session === name ? block.value.id : null;
  useEffect(() => {
    places.current.take(commands ?? []);
    return lookThrough(name, (now) => {
      if (now === null) return setSight(null);
      const { top, height, terminal } = now;
      const placed = places.current.look(now);
      setSight((old) =>
        old && old.top === top && old.rows === terminal.rows && old.height === height && old.placed.length === placed.length && old.placed.every((one, at) => one.command === placed[at]?.command && one.line === placed[at]?.line)
          ? old
          : { top, rows: terminal.rows, height, placed },
      );
    });
  }, [name, commands, chosen]);
  if (!sight) return null;
  const { top, rows, height, placed } = sight;
  const at = placed.findIndex((one) => one.command.id === chosen);
  const now = placed[at];
  const end = (index: number): number => {
    const [one, next] = [placed[index], placed[index + 1]];
    return next ? next.line - 1 : Math.max(one?.line ?? 0, one?.command.last_line ?? top + rows - 1);
  };
  const from = now ? Math.max(now.line, top) : 0;
  const until = now ? Math.min(end(at), top + rows - 1) : -1;
  return (
    <>
      {placed
        .filter((one) => one.line >= top && one.line < top + rows)
        .map(({ command, line }) => (
          <i
            key={command.id}
            class={`gutter-mark ${kind(command)}`}
            aria-hidden="true"
            title={about(command)}
            style={{ top: `${(line - top) * height}px`, height: `${height}px` }}
            onPointerDown={stay}
            onMouseDown={stay}
            onClick={() => (block.value = chosen === command.id ? null : { session: name, id: command.id })}
          />
        ))}
      {now && until >= from && (
        <>
          <div class={`block-mark ${kind(now.command)}`} style={{ top: `${(from - top) * height}px`, height: `${(until - from + 1) * height}px` }} />
          {!TOUCHED && <Actions name={name} command={now.command} top={Math.max(0, from - top - 1) * height} height={height} />}
        </>
      )}
    </>
  );
}

/** In the row above: what was typed stays in sight. */
function Actions(props: { name: string; command: CommandInfo; top: number; height: number }) {
  const { name, command, top, height } = props;
  return (
    <div class="block-bar" role="toolbar" aria-label="This command" style={{ top: `${top}px`, height: `${Math.max(height, 18)}px` }} onPointerDown={stay} onMouseDown={stay}>
      <span class="soft">{about(command)}</span>
      <button title={keysFor("y")} onClick={() => void copyOutput(name, command.id)}>
        Copy output
      </button>
      <button title={keysFor("a")} onClick={() => enter(name, command.command)}>
        Run again
      </button>
      <button title={keysFor("l")} onClick={() => void copyLink(name, command.id)}>
        Copy link
      </button>
      <button aria-label="Leave this command" title="Esc" onClick={() => (block.value = null)}>
        ×
      </button>
    </div>
  );
}
