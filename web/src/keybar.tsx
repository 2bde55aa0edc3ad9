// Keys that a phone's keyboard lacks, and a field where a line is composed before it is sent. Ctrl and Alt stay down for the next key.
import { useState } from "preact/hooks";
import { held, typeKey, typeText } from "./terminal";

type Key = [label: string, name: string, spoken?: string];
/** Two rows of seven, the arrows as on a keyboard; one row where there is room. All of them are always in sight. */
const UPPER: Key[] = [
  ["esc", "Escape"],
  ["|", "|"],
  ["~", "~"],
  ["/", "/"],
  ["-", "-"],
  ["↑", "ArrowUp"],
  ["^C", "\x03", "Ctrl+C"],
];
const LOWER: Key[] = [
  ["^D", "\x04", "Ctrl+D"],
  ["←", "ArrowLeft"],
  ["↓", "ArrowDown"],
  ["→", "ArrowRight"],
];
const TAB: Key = ["tab", "Tab"];

export function KeyBar(props: { name: string }) {
  const [line, setLine] = useState("");
  // The keyboard of the phone stays open only if the terminal keeps the focus.
  const stay = (event: Event): void => event.preventDefault();
  const key = ([label, name, spoken]: Key) => (
    <button
      key={label}
      title={spoken ?? name}
      aria-label={spoken ?? (name.startsWith("Arrow") ? name : undefined)}
      onPointerDown={stay}
      onMouseDown={stay}
      onClick={() => typeKey(props.name, name)}
    >
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
    <>
      <form
        class="compose"
        onSubmit={(event) => {
          event.preventDefault();
          typeText(props.name, `${line}\r`);
          setLine("");
        }}
      >
        <input
          aria-label="A line to send"
          placeholder="Compose a line, then send it"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          enterkeyhint="send"
          value={line}
          onInput={(event) => setLine(event.currentTarget.value)}
        />
        <button class="primary">Send</button>
      </form>
      <div class="keybar" role="toolbar" aria-label="Keys">
        {UPPER.map(key)}
        {key(TAB)}
        {modifier("ctrl")}
        {modifier("alt")}
        {LOWER.map(key)}
      </div>
    </>
  );
}
