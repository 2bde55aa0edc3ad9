// Keys that a phone's keyboard lacks. Ctrl and Alt stay down for the next key, typed there or here.
import { held, typeKey } from "./terminal";

const KEYS: [label: string, name: string][] = [
  ["esc", "Escape"],
  ["tab", "Tab"],
];
const MORE: [label: string, name: string][] = [
  ["←", "ArrowLeft"],
  ["↓", "ArrowDown"],
  ["↑", "ArrowUp"],
  ["→", "ArrowRight"],
  ["|", "|"],
  ["~", "~"],
  ["/", "/"],
  ["-", "-"],
];

export function KeyBar(props: { name: string }) {
  // The keyboard of the phone stays open only if the terminal keeps the focus.
  const stay = (event: Event): void => event.preventDefault();
  const key = ([label, name]: [string, string]) => (
    <button key={name} title={name} aria-label={name.startsWith("Arrow") ? name : undefined} onPointerDown={stay} onMouseDown={stay} onClick={() => typeKey(props.name, name)}>
      {label}
    </button>
  );
  const modifier = (name: "ctrl" | "alt") => (
    <button
      key={name}
      aria-pressed={held.value[name]}
      onPointerDown={stay}
      onMouseDown={stay}
      onClick={() => (held.value = { ...held.value, [name]: !held.value[name] })}
    >
      {name}
    </button>
  );
  return (
    <div class="keybar" role="toolbar" aria-label="Keys">
      {KEYS.map(key)}
      {modifier("ctrl")}
      {modifier("alt")}
      {MORE.map(key)}
    </div>
  );
}
