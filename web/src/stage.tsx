import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { LastInput, SessionInfo } from "./api";
import { Approvals } from "./approvals";
import { copyText } from "./clipboard";
import { FindBar } from "./find";
import { ordered } from "./group";
import { Blocks } from "./gutter";
import { InboxList } from "./inbox";
import { PushSwitch } from "./notice";
import { KeyBar } from "./keybar";
import { Handles, PickBar } from "./pick";
import { StateMark } from "./state";
import {
  askKill,
  askName,
  askTags,
  attempt,
  captured,
  choose,
  create,
  creating,
  current,
  detach,
  finding,
  handBack,
  inspector,
  listed,
  narrow,
  room,
  selected,
  shown,
  sidebarOpen,
  takeOver,
  tell,
  view,
  type Entry,
} from "./store";
import { closePane, layoutsOpen, panes, splitPane } from "./layout";
import { keysFor } from "./shortcut";
import { fitSession, focusTerminal, TerminalView, visibleText, type Remote } from "./terminal";
import { zoom } from "./theme";

async function copyShown(name: string): Promise<void> {
  if (await copyText(visibleText(name))) tell("Copied.");
  else tell("The browser did not let the clipboard be written.", undefined, true);
}

function Menu(props: { entry: Entry }) {
  const { name } = props.entry.info;
  const menu = useRef<HTMLDetailsElement>(null);
  const close = (): void => menu.current?.removeAttribute("open");
  // It stands for this session alone and closes like any menu.
  useLayoutEffect(close, [name]);
  useLayoutEffect(() => {
    const outside = (event: Event): void => {
      if (!menu.current?.contains(event.target as Node)) close();
    };
    addEventListener("pointerdown", outside, true);
    return () => removeEventListener("pointerdown", outside, true);
  }, []);
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || !menu.current?.open) return;
    event.stopPropagation();
    close();
    focusTerminal(name);
  };
  return (
    <details ref={menu} class="menu" onKeyDown={onKey} onClick={(event) => event.target instanceof HTMLButtonElement && close()}>
      <summary title="More">⋯</summary>
      <div>
        <button onClick={() => askName(name)}>Rename…</button>
        <button onClick={() => askTags(name)}>Tags…</button>
        <button onClick={() => void detach(name)}>Detach every viewer</button>
        <button onClick={() => (view.value = "replay")}>Replay</button>
        <button onClick={() => (finding.value = true)}>Find…</button>
        <button onClick={() => void copyShown(name)}>Copy what is shown</button>
        {!narrow.value && (
          <>
            <button onClick={() => splitPane("row")}>Split to the right</button>
            <button onClick={() => splitPane("column")}>Split below</button>
            {panes.value.length > 1 && <button onClick={() => closePane()}>Close this part</button>}
            <button onClick={() => (layoutsOpen.value = true)}>Layouts…</button>
          </>
        )}
        <button onClick={() => zoom(1)}>Larger type</button>
        <button onClick={() => zoom(-1)}>Smaller type</button>
        <button class="danger" onClick={() => askKill(name)}>
          {props.entry.info.running ? "Kill…" : "Close"}
        </button>
      </div>
    </details>
  );
}

/** Who typed last: a person, or which agent. */
function Typed(props: { last: LastInput }) {
  const { by, name, ago_ms } = props.last;
  const who = by === "agent" ? `agent ${name.replace(/^agent:/, "")}` : "a person";
  return (
    <span class={`soft who ${by}`} title={`${by} ${name}, ${Math.round(ago_ms / 1000)} s before this was asked`}>
      typed by <bdi>{who}</bdi>
    </span>
  );
}

/** A click on a button of the bar leaves the keyboard where it is. */
function keepFocus(event: MouseEvent): void {
  if (event.target instanceof Element && event.target.closest("button") && !event.target.closest("details")) event.preventDefault();
}

/** The session's own size, where it is not the window's, and a button that makes it so. */
function Fit(props: { name: string; remote: Remote }) {
  const { size, fits, follows } = props.remote;
  if (!size || !fits || (size.rows === fits.rows && size.cols === fits.cols)) return null;
  const here = `${fits.cols}×${fits.rows}`;
  const why = follows ? `It takes this window's size, ${here}, when you type.` : "It changes only when you press Fit.";
  return (
    <button class="fit" title={`The session is ${size.cols} columns by ${size.rows} rows. ${why} Fit: ${keysFor("z")}`} onClick={() => fitSession(props.name)}>
      <span class="mono">
        {size.cols}×{size.rows}
      </span>{" "}
      Fit
    </button>
  );
}

/** What became of a session that has ended, and what may be done now. */
function Ended(props: { info: SessionInfo }) {
  const { name, command, cwd, tags, exit_code, sandbox } = props.info;
  return (
    <footer class="ended">
      <span role="status">
        <bdi>{name}</bdi> has ended with status {exit_code ?? "unknown"}. Its lines can be read until you close it.
      </span>
      {!sandbox && !name.includes("/") && <button onClick={() => void create({ command, cwd, tags })}>New one like it</button>}
      <button class="primary" onClick={() => askKill(name)}>
        Close
      </button>
    </footer>
  );
}

export function Single(props: { entry?: Entry; active?: boolean }) {
  const entry = props.entry ?? current.value;
  const active = props.active !== false;
  const [remote, setRemote] = useState<Remote | null>(null);
  useLayoutEffect(() => {
    if (!active) return;
    captured.value = Boolean(remote?.owner);
    if (remote?.fits) room.value = remote.fits;
  }, [remote, active]);
  if (!entry) return <Empty />;
  const { info, state } = entry;
  const taken = remote?.taken ?? state?.taken_by ?? null;
  return (
    <section class="single">
      <header class="bar" onMouseDown={keepFocus}>
        <button class="only-phone" aria-label="Sessions" onClick={(e) => (e.stopPropagation(), (sidebarOpen.value = true))}>
          ☰
        </button>
        <StateMark entry={entry} word />
        <h1 title={info.name}>
          <bdi>{info.name}</bdi>
        </h1>
        <span class="soft mono path" title={info.cwd}>
          <bdi>{info.cwd}</bdi>
        </span>
        <span class="push" />
        {info.sandbox && (
          <span class="soft sandbox" role="status" title={`Held in by ${info.sandbox.backend}; nothing inside can change that.`}>
            sandbox {info.sandbox.profile}
          </span>
        )}
        {info.journal === "full" && (
          <span class="soft unkept" role="status" title="The disk of the server is full: make room there. What is printed meanwhile is lost when the server restarts.">
            not kept on disk
          </span>
        )}
        {remote?.waits && (
          <span class="soft" role="status">
            <bdi>{remote.waits}</bdi>
          </span>
        )}
        {info.running && remote && <Fit name={info.name} remote={remote} />}
        {state?.last_input && <Typed last={state.last_input} />}
        <button class="icon find-button" title={`Find in this terminal (${keysFor("f")})`} aria-label="Find" aria-pressed={finding.value} onClick={() => (finding.value = !finding.value)}>
          <svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.6" aria-hidden="true">
            <circle cx="6" cy="6" r="4" />
            <path d="M9 9l3.5 3.5" stroke-linecap="round" />
          </svg>
        </button>
        {info.running &&
          (taken ? (
            <button class="primary" onClick={() => void handBack(info.name)}>
              Hand back
            </button>
          ) : (
            <button title="Agents cannot type until you hand it back" onClick={() => void takeOver(info.name)}>
              Take over
            </button>
          ))}
        {inspector.value === null && active && (
          <button class="icon" title={`Commands and details (${keysFor("i")})`} aria-label="Commands" onClick={() => (inspector.value = "commands")}>
            <svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" aria-hidden="true">
              <path d="M1.5 3h1M1.5 7h1M1.5 11h1M5.5 3h7M5.5 7h7M5.5 11h7" />
            </svg>
          </button>
        )}
        <Menu entry={entry} />
      </header>
      {info.notice && (
        <p class="banner" role="status">
          <bdi>{info.notice}</bdi>
        </p>
      )}
      {finding.value && active && (
        <div class="find-over">
          <FindBar key={info.name} name={info.name} close={() => (finding.value = false)} />
        </div>
      )}
      <PickBar name={info.name} low={false} />
      <TerminalView key={info.name} name={info.name} focus={active} onRemote={setRemote}>
        <Blocks key={info.name} name={info.name} />
        <Handles name={info.name} />
      </TerminalView>
      <PickBar name={info.name} low />
      {info.running ? <KeyBar name={info.name} hidden={entry.state?.state === "hidden"} /> : info.unreachable_since == null && <Ended info={info} />}
    </section>
  );
}

/** Columns that make the tiles largest, at most four; the more the better where it is all the same. */
function columnsFor(count: number, width: number, height: number): number {
  let best = 1;
  let largest = 0;
  for (let columns = 1; columns <= Math.min(4, Math.max(1, Math.floor(width / TILE_PX)), Math.max(1, count)); columns++) {
    const rows = Math.ceil(count / columns);
    const scale = Math.min(width / columns / 640, Math.max(height / rows, ROW_PX) / 400);
    if (scale >= largest * 0.999) [best, largest] = [columns, Math.max(scale, largest)];
  }
  return best;
}

const TILE_PX = 270;
const ROW_PX = 190;

export function Grid() {
  const area = useRef<HTMLElement>(null);
  const [columns, setColumns] = useState(1);
  const count = shown.value.length;
  useLayoutEffect(() => {
    const element = area.current as HTMLElement;
    const measure = (): void => setColumns(columnsFor(count, element.clientWidth, element.clientHeight));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [count]);
  const links = (): HTMLElement[] => [...(area.current?.querySelectorAll<HTMLElement>(".tile .link") ?? [])];
  // The keyboard begins at the session that one came from.
  useLayoutEffect(() => {
    const all = links();
    (all.find((one) => one.dataset.session === selected.peek()) ?? all[0])?.focus();
  }, []);
  const go = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (by === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const all = links();
    all[all.indexOf(document.activeElement as HTMLElement) + by]?.focus();
    event.preventDefault();
  };
  return (
    <section class="grid" aria-label="All sessions" ref={area} onKeyDown={go} style={{ gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` }}>
      {ordered.value.map((entry) => (
        <article key={entry.info.name} class="tile" title={`Open ${entry.info.name}`} onClick={() => choose(entry.info.name)}>
          <header>
            <StateMark entry={entry} />
            <button class="link" data-session={entry.info.name} onClick={() => choose(entry.info.name)}>
              <bdi>{entry.info.name}</bdi>
            </button>
            <span class="soft mono">
              <bdi>{entry.info.title || entry.info.command}</bdi>
            </span>
          </header>
          <TerminalView name={entry.info.name} readOnly focus={false} />
        </article>
      ))}
      {shown.value.length === 0 && <Empty />}
    </section>
  );
}

/** A notice that comes or goes above a list moves the list, not what is read in it: a finger on its way down meets what it was aimed at. */
function useSteady(list: { current: HTMLElement | null }): void {
  useLayoutEffect(() => {
    const element = list.current;
    if (!element) return;
    const first = element.getBoundingClientRect().top;
    let top = first;
    const observer = new ResizeObserver(() => {
      const now = element.getBoundingClientRect().top;
      if (now > first) element.classList.add("lowered"); // a short list gets room to scroll
      element.scrollTop += now - top;
      if (now <= first) element.classList.remove("lowered");
      top = now;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
}

export function Queue() {
  const list = useRef<HTMLElement>(null);
  useSteady(list);
  return (
    <section ref={list} class="queue">
      <h1>What wants attention</h1>
      <Approvals />
      <InboxList />
      <PushSwitch />
    </section>
  );
}

/** Before the list of sessions is known nothing is said of what is in it. */
export function Awaited() {
  return (
    <section class="empty-stage" aria-busy="true">
      <p class="soft">Waiting for the server…</p>
    </section>
  );
}

export function Empty() {
  const button = useRef<HTMLButtonElement>(null);
  const known = listed.value;
  // Enter is enough where nothing else has the keyboard. Before the list is known, keys wait for a terminal.
  useLayoutEffect(() => {
    if (known && document.activeElement === document.body) button.current?.focus();
  }, [known]);
  if (!known) return <Awaited />;
  return (
    <section class="empty-stage">
      <h1>{selected.value ? "This session is gone" : "No session is open"}</h1>
      <p>Open one here, from a terminal, or let an agent do it.</p>
      <div class="choices">
        <button ref={button} class="primary" onClick={() => void create({})}>
          Open a shell
        </button>
        <button onClick={() => (creating.value = true)}>New session…</button>
      </div>
      <pre
        title="Copy"
        onClick={() => void attempt(() => navigator.clipboard.writeText("wsh new --name work"))}
      >
        wsh new --name work
      </pre>
    </section>
  );
}
