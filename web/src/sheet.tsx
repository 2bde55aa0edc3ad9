// The keys, on a sheet: what they are, and the leader, which can be another.
import { useLayoutEffect, useRef } from "preact/hooks";
import { directKeys, pending, setDirectKeys, setLeader, SHORTCUTS, spelt, wordsOf } from "./shortcut";
import { leader, sheetOpen, USUAL_LEADER, whenClosed } from "./store";

const TERMINAL: [string, string][] = [
  ["Ctrl+Shift+C", "Copy what is selected; so does selecting it"],
  ["Esc", "Leave a selection or a command, else the program's"],
  ["Ctrl+C", "Copy while something is selected, else the program's"],
  ["Ctrl+Shift+V", "Paste"],
  ["Shift+PageUp, Shift+Home", "Earlier lines; the first one that is kept"],
  ["Shift+PageDown, Shift+End", "Later lines; the last one"],
  ["Shift+wheel", "Pan a session that is wider than the window"],
];

export function Sheet() {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="dialog sheet" aria-labelledby="sheet-title" {...whenClosed(() => (sheetOpen.value = false))}>
      {/* The keyboard begins at the top: a button at the end would be scrolled to. */}
      <h2 id="sheet-title" tabIndex={-1} autofocus>
        Keys
      </h2>
      <p class="soft">
        Press <kbd>{leader.value}</kbd>, let go, then a key. Everything else goes where the cursor blinks.
      </p>
      <dl>
        {SHORTCUTS.map((one) => (
          <div key={one.key}>
            <dt>
              <kbd>{spelt(one.key)}</kbd>
              {one.direct && (directKeys.value || !one.direct.startsWith("Alt")) && (
                <>
                  {" "}
                  or <kbd>{spelt(one.direct)}</kbd>
                </>
              )}
            </dt>
            <dd>{one.does}</dd>
          </div>
        ))}
        {TERMINAL.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <label>
        Leader (press it here)
        <input
          class="mono"
          readOnly
          value={leader.value}
          onKeyDown={(event) => {
            if (event.key === "Escape" || event.key === "Tab") return;
            event.preventDefault();
            const words = wordsOf(event);
            if (words !== null && (event.ctrlKey || event.altKey || event.metaKey)) setLeader(words);
          }}
        />
      </label>
      <label class="check">
        <input type="checkbox" checked={directKeys.value} onChange={(event) => setDirectKeys(event.currentTarget.checked)} />
        Alt keys by themselves; off, they go to the terminal
      </label>
      <footer>
        <button onClick={() => setLeader(USUAL_LEADER)}>Usual leader</button>
        <button class="primary" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </footer>
    </dialog>
  );
}

/** What may follow the leader, while it is waited for. */
export function Hint() {
  if (!pending.value) return null;
  return (
    <div class="hint" role="status">
      <kbd>{leader.value}</kbd>
      {SHORTCUTS.slice(0, 11).map((one) => (
        <span key={one.key}>
          <kbd>{one.key.toUpperCase()}</kbd> {one.does}
        </span>
      ))}
      <span>
        <kbd>[</kbd> <kbd>]</kbd> Commands
      </span>
      <span>
        <kbd>|</kbd> <kbd>_</kbd> Split
      </span>
      <span>
        <kbd>O</kbd> Next part
      </span>
      <span>
        <kbd>Esc</kbd> Never mind
      </span>
    </div>
  );
}
