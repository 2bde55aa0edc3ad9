import { useEffect, useRef, useState } from "preact/hooks";
import { SHORTCUTS } from "./shortcut";
import { choose, entries, kill, paletteOpen, selected, view } from "./store";
import { theme } from "./theme";

interface Choice {
  label: string;
  keys?: string;
  run: () => void;
}

function choices(): Choice[] {
  const name = selected.value;
  return [
    ...[...entries.value.values()].map((entry) => ({ label: `Go to ${entry.info.name}`, run: () => choose(entry.info.name) })),
    ...SHORTCUTS.filter((s) => s.keys !== "Ctrl+K").map((s) => ({ label: s.does, keys: s.keys, run: s.run })),
    { label: "Server, clients and configuration", run: () => (view.value = "admin") },
    ...(name ? [{ label: `Replay ${name}`, run: () => (view.value = "replay") }] : []),
    ...(name ? [{ label: `Kill ${name}…`, run: () => void (confirm(`Kill ${name}?`) && kill(name)) }] : []),
    ...(["system", "dark", "light"] as const).map((t) => ({ label: `Theme: ${t}`, run: () => (theme.value = t) })),
  ];
}

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  useEffect(() => dialog.current?.showModal(), []);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = choices().filter((c) => words.every((word) => c.label.toLowerCase().includes(word))).slice(0, 50);
  const pick = (choice: Choice | undefined): void => {
    dialog.current?.close();
    choice?.run();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Command palette" onClose={() => (paletteOpen.value = false)}>
      <input
        autofocus
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${at}`}
        aria-label="Command"
        placeholder="Type a command or a session"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
          else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
          else if (event.key === "Enter") pick(found[at]);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Commands">
        {found.map((choice, index) => (
          <li
            key={choice.label}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => pick(choice)}
            onMouseMove={() => setAt(index)}
          >
            <bdi>{choice.label}</bdi>
            {choice.keys && <kbd>{choice.keys}</kbd>}
          </li>
        ))}
      </ul>
    </dialog>
  );
}
