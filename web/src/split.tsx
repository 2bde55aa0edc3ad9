// The stage with its splits: panes with a session each, and dividers that are moved by pointer and by keys.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import "./split.css";
import { closePane, deleteLayout, enterPane, front, isSplit, layout, layoutsOpen, openLayout, panes, saved, saveLayout, setShare, show, type Layout, type Pane, type Split } from "./layout";
import { score } from "./fuzzy";
import { keysFor } from "./shortcut";
import { StateMark } from "./state";
import { Awaited, Single } from "./stage";
import { create, entries, listed, narrow, whenClosed } from "./store";

export function Splits() {
  // A phone has room for one.
  if (narrow.value || !isSplit(layout.value)) return <Single />;
  return (
    <div class="splits">
      <Part layout={layout.value} />
    </div>
  );
}

function Part(props: { layout: Layout }) {
  return isSplit(props.layout) ? <Two split={props.layout} /> : <PaneView key={props.layout.id} pane={props.layout} />;
}

function Two(props: { split: Split }) {
  const { id, way, share, first, second } = props.split;
  return (
    <div class={`two-parts ${way === "row" ? "across" : "down"}`}>
      <div class="part" style={{ flexGrow: share }}>
        <Part key={first.id} layout={first} />
      </div>
      <Divider id={id} way={way} share={share} />
      <div class="part" style={{ flexGrow: 1 - share }}>
        <Part key={second.id} layout={second} />
      </div>
    </div>
  );
}

function Divider(props: { id: number; way: "row" | "column"; share: number }) {
  const element = useRef<HTMLDivElement>(null);
  const drag = (event: PointerEvent): void => {
    const box = element.current?.parentElement?.getBoundingClientRect();
    if (!box || !element.current?.hasPointerCapture(event.pointerId)) return;
    setShare(props.id, props.way === "row" ? (event.clientX - box.left) / box.width : (event.clientY - box.top) / box.height);
  };
  return (
    <div
      ref={element}
      class="divider"
      role="separator"
      tabIndex={0}
      aria-label="Size of the parts"
      aria-orientation={props.way === "row" ? "vertical" : "horizontal"}
      aria-valuenow={Math.round(props.share * 100)}
      onPointerDown={(event) => (event.preventDefault(), event.currentTarget.setPointerCapture(event.pointerId))}
      onPointerMove={drag}
      onDblClick={() => setShare(props.id, 0.5)}
      onKeyDown={(event) => {
        const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        setShare(props.id, props.share + by * 0.05);
      }}
    />
  );
}

function PaneView(props: { pane: Pane }) {
  const { id, session } = props.pane;
  const entry = session === null ? undefined : entries.value.get(session);
  const active = front.value === id;
  return (
    <div class={`pane${active ? " front" : ""}`} data-pane={session ?? ""} onFocusCapture={() => front.peek() !== id && enterPane(id)}>
      {entry ? <Single key={entry.info.name} entry={entry} active={active} /> : !listed.value && session !== null ? <Awaited /> : <Chooser pane={props.pane} active={active} gone={session} />}
    </div>
  );
}

/** What shall be shown here: a new session, or one that no other part shows. */
function Chooser(props: { pane: Pane; active: boolean; gone: string | null }) {
  const field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  useLayoutEffect(() => {
    if (props.active) field.current?.focus();
  }, [props.active]);
  const taken = new Set(panes.value.map((one) => one.session));
  const beside = panes.value.find((one) => one.session !== null && entries.value.has(one.session))?.session;
  const cwd = beside ? entries.value.get(beside)?.info.cwd : undefined;
  const open = (): void => {
    front.value = props.pane.id;
    void create(cwd ? { cwd } : {});
  };
  const found = [...entries.value.values()]
    .filter((entry) => !taken.has(entry.info.name))
    .map((entry) => ({ entry, score: score(text, [entry.info.name, entry.info.title || entry.info.command, ...entry.info.tags].join(" ")) }))
    .filter((one) => one.score > 0)
    .sort((a, b) => b.score - a.score)
    .map((one) => one.entry);
  const rows = (): HTMLElement[] => [...(field.current?.closest(".chooser")?.querySelectorAll<HTMLElement>("input, li .row") ?? [])];
  return (
    <section
      class="chooser"
      aria-label="Choose a session"
      onKeyDown={(event) => {
        const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (by !== undefined) rows()[Math.max(0, rows().indexOf(document.activeElement as HTMLElement) + by)]?.focus();
        else if (event.key === "Escape") closePane(props.pane.id);
        else return;
        event.preventDefault();
      }}
    >
      <h2>{props.gone === null ? "What shall be shown here?" : `${props.gone} is gone`}</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() === "") open();
          else if (found[0]) show(props.pane.id, found[0].info.name);
        }}
      >
        <input
          ref={field}
          type="text"
          aria-label="Filter"
          placeholder="Name, command or tag; Enter for a new session"
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="button" class="primary" onClick={open}>
          New session
        </button>
      </form>
      <ul>
        {found.map((entry) => (
          <li key={entry.info.name}>
            <button class="row" onClick={() => show(props.pane.id, entry.info.name)}>
              <StateMark entry={entry} />
              <bdi>{entry.info.name}</bdi>
              <span class="soft mono">
                <bdi>{entry.info.title || entry.info.command}</bdi>
              </span>
            </button>
          </li>
        ))}
      </ul>
      {text !== "" && found.length === 0 && <p class="soft">No session matches.</p>}
      <button class="quiet" onClick={() => closePane(props.pane.id)}>
        Close this part ({keysFor("x")})
      </button>
    </section>
  );
}

export function Layouts() {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const names = Object.keys(saved.value);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="layouts-title" {...whenClosed(() => (layoutsOpen.value = false))}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const name = String(new FormData(event.currentTarget).get("name") ?? "").trim();
          if (!name) return;
          saveLayout(name);
          dialog.current?.close();
        }}
      >
        <h2 id="layouts-title">Layouts</h2>
        <ul class="layouts">
          {names.map((name) => (
            <li key={name}>
              <button
                type="button"
                class="row"
                onClick={() => {
                  dialog.current?.close();
                  openLayout(name);
                }}
              >
                <bdi>{name}</bdi>
              </button>
              <button type="button" class="danger" aria-label={`Delete ${name}`} onClick={() => deleteLayout(name)}>
                Delete
              </button>
            </li>
          ))}
        </ul>
        <label>
          Keep the present one as
          <input name="name" autofocus autocomplete="off" maxLength={64} placeholder={names.length === 0 ? "such as review" : "another name"} />
        </label>
        <p class="soft">Layouts are kept in this browser: they belong to the screen that they were made for.</p>
        <footer>
          <button type="button" onClick={() => dialog.current?.close()}>
            Close
          </button>
          <button class="primary" type="submit">
            Keep
          </button>
        </footer>
      </form>
    </dialog>
  );
}
