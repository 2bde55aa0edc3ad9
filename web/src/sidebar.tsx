import "./group.css";
import { useLayoutEffect, useRef } from "preact/hooks";
import { grouping, GROUPINGS, groups, setGrouping, type Group, type Grouping } from "./group";
import { wanting } from "./inbox";
import { TOUCHED } from "./frame";
import { keysFor } from "./shortcut";
import { StateMark } from "./state";
import { choose, creating, filter, listed, paletteOpen, selected, shown, sidebarOpen, view, visible, type View } from "./store";
import { focusTerminal } from "./terminal";
import { Thumbnail } from "./thumbnail";

function Place(props: { to: View; label: string; keys: string; count?: number }) {
  return (
    <button
      class={`place${view.value === props.to ? " on" : ""}`}
      title={`${props.label} (${props.keys})`}
      onClick={() => {
        view.value = props.to;
        sidebarOpen.value = false;
      }}
    >
      {props.label}
      {props.count ? <span class="count">{props.count}</span> : null}
    </button>
  );
}

export function Sidebar() {
  const list = useRef<HTMLDivElement>(null);
  const name = selected.value;
  const known = listed.value;
  // The one in front is in sight. Not by the browser's own means, which would move the drawer that the list lies in.
  useLayoutEffect(() => {
    const room = list.current?.getBoundingClientRect();
    const lies = list.current?.querySelector(".session.on")?.getBoundingClientRect();
    if (!list.current || !room || !lies) return;
    if (lies.top < room.top) list.current.scrollTop -= room.top - lies.top;
    else if (lies.bottom > room.bottom) list.current.scrollTop += lies.bottom - room.bottom;
  }, [name, known]);
  return (
    <nav class="sidebar" aria-label="Sessions">
      <header>
        <strong>wsh</strong>
        <button class="quiet" title={`Command palette (${keysFor("k")})`} onClick={() => ((sidebarOpen.value = false), (paletteOpen.value = true))}>
          {TOUCHED ? "Go to…" : keysFor("k")}
        </button>
        <button class="primary" title={`New session (${keysFor("n")})`} onClick={() => (creating.value = true)}>
          New
        </button>
      </header>
      <div class="places">
        <Place to="grid" label="Grid" keys={keysFor("g")} />
        <Place to="queue" label="Queue" keys={keysFor("q")} count={wanting.value} />
        <Place to="search" label="Search" keys={keysFor("s")} />
        <Place to="admin" label="Server" keys="palette" />
      </div>
      <input
        type="search"
        class="filter"
        placeholder="Filter by name, command, tag"
        aria-label="Filter sessions"
        value={filter.value}
        onInput={(event) => (filter.value = event.currentTarget.value)}
      />
      <label class="group-by">
        <span class="soft">Sessions</span>
        <select value={grouping.value} aria-label="Group sessions" onChange={(event) => setGrouping(event.currentTarget.value as Grouping)}>
          {GROUPINGS.map(([how, label]) => (
            <option key={how} value={how}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <div class="sessions" ref={list}>
        {groups.value.map((group) =>
          grouping.value === "none" ? (
            <SessionList key="" group={group} />
          ) : (
            <details key={group.label} open>
              <summary>
                <bdi>{group.label}</bdi> <span class="soft">{group.entries.length}</span>
              </summary>
              <SessionList group={group} />
            </details>
          ),
        )}
      </div>
      {listed.value && shown.value.length === 0 && (
        <p class="soft empty">
          {filter.value ? "No session matches." : "No sessions yet. Begin here with New, or in a terminal:"}
          {!filter.value && <code>wsh new</code>}
        </p>
      )}
    </nav>
  );
}

function SessionList(props: { group: Group }) {
  return (
    <ul>
      {props.group.entries.map((entry) => (
        <li key={entry.info.name}>
          <button
            class={`session ${visible(entry)}${entry.info.name === selected.value ? " on" : ""}`}
            aria-current={entry.info.name === selected.value ? "true" : undefined}
            onClick={() => {
              choose(entry.info.name);
              focusTerminal(entry.info.name); // one that was shown already does not come anew
            }}
          >
            <Thumbnail name={entry.info.name} />
            <span class="about">
              <span class="name">
                <StateMark entry={entry} />
                <bdi>{entry.info.name}</bdi>
              </span>
              <span class="soft mono">
                <bdi>{entry.info.title || entry.info.command}</bdi>
              </span>
              {entry.info.tags.length > 0 && (
                <span class="tags">
                  {entry.info.tags.map((tag) => (
                    <i key={tag}>{tag}</i>
                  ))}
                </span>
              )}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
