import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { listCommands } from "./api";
import { copyOnSelect, permission, setCopyOnSelect, setPermission } from "./clipboard";
import { score } from "./fuzzy";
import { grouping, GROUPINGS, setGrouping } from "./group";
import { openLayout, saved } from "./layout";
import { directKeys, keysOf, setDirectKeys, SHORTCUTS } from "./shortcut";
import { askKill, askName, askTags, choose, entries, paletteOpen, selected, view, whenClosed } from "./store";
import { enter } from "./terminal";
import { FONTS, fontFamily, fontSize, setFont, theme } from "./theme";

interface Choice {
  label: string;
  keys?: string;
  run: () => void;
}

const MOST = 50;
const RECENT = 30;

function choices(commands: string[]): Choice[] {
  const name = selected.value;
  const is = (now: boolean): string => (now ? " (now)" : "");
  return [
    ...[...entries.value.values()].map((entry) => ({ label: `Go to ${entry.info.name}`, run: () => choose(entry.info.name) })),
    ...SHORTCUTS.filter((s) => s.key !== "k").map((s) => ({ label: s.does, keys: keysOf(s), run: s.run })),
    { label: "Server, clients and configuration", run: () => (view.value = "admin") },
    ...(name
      ? [
          { label: `Rename ${name}…`, run: () => askName(name) },
          { label: `Tags of ${name}…`, run: () => askTags(name) },
        ]
      : []),
    ...(name ? [{ label: entries.value.get(name)?.info.running === false ? `Close ${name}` : `Kill ${name}…`, run: () => askKill(name) }] : []),
    ...(name ? commands.map((command) => ({ label: `Run ${command}`, run: () => (choose(name), enter(name, command)) })) : []),
    ...(["system", "dark", "light"] as const).map((t) => ({ label: `Theme: ${t}${is(theme.value === t)}`, run: () => (theme.value = t) })),
    ...Object.keys(saved.value).map((one) => ({ label: `Layout: ${one}`, run: () => openLayout(one) })),
    ...GROUPINGS.map(([how, label]) => ({ label: `Sessions ${label}${is(grouping.value === how)}`, run: () => setGrouping(how) })),
    ...FONTS.map(([label, family]) => ({ label: `Font: ${label}${is(fontFamily.value === family)}`, run: () => setFont(family) })),
    ...[11, 12, 13, 14, 16, 18, 20].map((px) => ({ label: `Type size: ${px}${is(fontSize.value === px)}`, run: () => (fontSize.value = px) })),
    { label: `Copy on select: ${copyOnSelect.value ? "turn off" : "turn on"}`, run: () => setCopyOnSelect(!copyOnSelect.value) },
    ...(["ask", "allow", "never"] as const).map((p) => ({ label: `Programs may write the clipboard: ${p}${is(permission.value === p)}`, run: () => setPermission(p) })),
    { label: `Alt keys of the page: ${directKeys.value ? "turn off" : "turn on"}`, run: () => setDirectKeys(!directKeys.value) },
  ];
}

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [commands, setCommands] = useState<string[]>([]);
  // Before the next key is pressed, or it would go where the keyboard was.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    const name = selected.peek();
    if (name !== null)
      listCommands(name)
        .then((list) => setCommands([...new Set(list.reverse().map((one) => one.command.trim()))].filter((one) => one && !one.includes("\n")).slice(0, RECENT)))
        .catch(() => undefined);
  }, []);
  const found = useMemo(() => {
    const scored = choices(commands).map((choice, index) => ({ choice, index, score: score(text, choice.label) }));
    return scored
      .filter((one) => one.score > 0)
      .sort((a, b) => b.score - a.score || a.index - b.index)
      .slice(0, MOST)
      .map((one) => one.choice);
  }, [text, commands, entries.value]);
  const pick = (choice: Choice | undefined): void => {
    if (!choice) return; // it stays: what is typed next is not for the shell
    dialog.current?.close();
    paletteOpen.value = false;
    choice.run();
  };
  useEffect(() => dialog.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }), [at]);
  return (
    <dialog ref={dialog} class="palette" aria-label="Command palette" {...whenClosed(() => (paletteOpen.value = false))}>
      <input
        autofocus
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found.length > 0 ? `palette-${at}` : undefined}
        aria-label="Command"
        placeholder="A session, a command or a setting"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.max(0, Math.min(at + 1, found.length - 1)));
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
      {found.length === 0 && (
        <p class="soft" role="status">
          Nothing matches.
        </p>
      )}
    </dialog>
  );
}
