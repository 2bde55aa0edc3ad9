// Keys that a phone's keyboard lacks, and a field where a line is composed before it is sent. Ctrl and Alt stay down for the next key.
import { useRef, useState } from "preact/hooks";
import { harmless } from "./paste";
import { awayHeeded } from "./store";
import { held, modified, typeKey, typeText } from "./terminal";

type Key = [label: string, name: string, spoken?: string];
/** Two rows of seven, the arrows as on a keyboard; one row where there is room. All of them are in sight; of a phone held sideways the row scrolls. */
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
/** These come first while the keyboard is up and the keys stand in one row: as many as have room. */
const FIRST = ["Escape", "Tab", "ctrl", "\x03", "ArrowLeft", "ArrowUp", "ArrowDown", "ArrowRight"];
/** Signs that the keyboard of a phone has as well: the last ones where the keys stand in one row. */
const SIGNS = ["|", "~", "/", "-"];
const TAB: Key = ["tab", "Tab"];
const OPEN = { type: "text", placeholder: "Compose a line", autocomplete: "off" } as const;
/** At a hidden prompt: neither the screen nor the phone's keyboard keeps what is typed, and no password is offered or asked to be saved. */
const SECRET = { type: "password", placeholder: "It is not shown", autocomplete: "one-time-code" } as const;
const place = (name: string): string | undefined => (FIRST.includes(name) ? `--at: ${FIRST.indexOf(name)}` : undefined);

export function KeyBar(props: { name: string; hidden: boolean }) {
  const [line, setLine] = useState("");
  const field = useRef<HTMLInputElement>(null);
  // The keyboard of the phone stays open only if what has the focus keeps it: the terminal, or the field.
  const stay = (event: Event): void => event.preventDefault();
  /** Signs go into a line that is being composed; Tab takes the line along, because the shell completes it. */
  const press = (name: string): void => {
    const composing = document.activeElement === field.current;
    if (composing && name.length === 1 && name >= " " && !held.peek().ctrl && !held.peek().alt) {
      field.current?.setRangeText(name, field.current.selectionStart ?? 0, field.current.selectionEnd ?? 0, "end");
      setLine(field.current?.value ?? "");
      return;
    }
    if (composing && name === "Tab" && line) {
      typeText(props.name, line);
      setLine("");
    }
    typeKey(props.name, name, !composing);
  };
  const send = (end: string): void => {
    awayHeeded.value = false; // where the line is kept, that is said
    typeText(props.name, line + end);
    setLine("");
  };
  const key = ([label, name, spoken]: Key) => (
    <button
      key={label}
      class={SIGNS.includes(name) ? "sign" : undefined}
      style={place(name)}
      title={spoken ?? name}
      aria-label={spoken ?? (name.startsWith("Arrow") ? name : undefined)}
      onPointerDown={stay}
      onMouseDown={stay}
      onClick={() => press(name)}
    >
      {label}
    </button>
  );
  const modifier = (name: "ctrl" | "alt") => (
    <button
      key={name}
      style={place(name)}
      aria-pressed={held.value[name]}
      onPointerDown={stay}
      onMouseDown={stay}
      onClick={() => (held.value = { ...held.value, [name]: !held.value[name] })}
    >
      {name}
    </button>
  );
  return (
    <div class="hands">
      <form
        class="compose"
        onSubmit={(event) => {
          event.preventDefault();
          send("\r");
        }}
      >
        <input
          ref={field}
          {...(props.hidden ? SECRET : OPEN)}
          aria-label="A line to send"
          autocapitalize="off"
          spellcheck={false}
          enterkeyhint="send"
          value={line}
          onInput={(event) => {
            const typed = event.data?.at(-1);
            if (typed !== undefined && (held.peek().ctrl || held.peek().alt)) {
              // It is the key that Ctrl or Alt was pressed for, not a part of the line.
              event.currentTarget.value = line;
              typeText(props.name, modified(typed));
            } else {
              const text = harmless(event.currentTarget.value);
              if (text !== event.currentTarget.value) event.currentTarget.value = text;
              setLine(text);
            }
          }}
          onKeyDown={(event) => {
            if (event.key !== "Backspace" || line !== "") return;
            event.preventDefault();
            typeText(props.name, "\x7f");
          }}
        />
        <button type="button" class="nowrap" aria-label="no ⏎: the line goes without Enter" title="The line goes without Enter" disabled={line === ""} onPointerDown={stay} onMouseDown={stay} onClick={() => send("")}>
          no ⏎
        </button>
        <button class="primary" onPointerDown={stay} onMouseDown={stay}>
          Send
        </button>
      </form>
      <div class="keybar" role="toolbar" aria-label="Keys">
        {UPPER.map(key)}
        {key(TAB)}
        {modifier("ctrl")}
        {modifier("alt")}
        {LOWER.map(key)}
      </div>
    </div>
  );
}
