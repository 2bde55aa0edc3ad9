// States have a colour, a shape and a word; never one of them alone.
import { visible, type Entry, type Visible } from "./store";

const WORDS: Record<Visible, string> = {
  running: "running",
  idle: "idle",
  open: "open",
  waiting: "asks",
  hidden: "asks, hidden",
  attention: "quiet",
  exited: "exited 0",
  failed: "failed",
  away: "out of reach",
};

function Shape(props: { state: Visible }) {
  switch (props.state) {
    case "idle":
      return <circle cx="6" cy="6" r="2.2" />;
    case "open":
      return <rect x="2.5" y="3" width="7" height="6" rx="1" fill="none" stroke="currentColor" stroke-width="1.4" />;
    case "away":
      return <path d="M2.5 2.5l7 7m0-7l-7 7" fill="none" stroke="currentColor" stroke-width="1.6" />;
    case "running":
      return <circle cx="6" cy="6" r="4" />;
    case "waiting":
      return (
        <>
          <circle cx="6" cy="6" r="3.5" fill="none" stroke="currentColor" stroke-width="1.4" />
          <path d="M6 2.5a3.5 3.5 0 0 1 0 7z" />
        </>
      );
    case "hidden":
      return (
        <>
          <rect x="2" y="5.5" width="8" height="5" rx="1" />
          <path d="M3.8 5.5V4a2.2 2.2 0 0 1 4.4 0v1.5" fill="none" stroke="currentColor" stroke-width="1.3" />
        </>
      );
    case "attention":
      return <circle cx="6" cy="6" r="3.6" fill="none" stroke="currentColor" stroke-width="1.8" />;
    default:
      return <rect x="2.5" y="2.5" width="7" height="7" rx="1" />;
  }
}

export function StateMark(props: { entry: Entry; word?: boolean }) {
  const state = visible(props.entry);
  const word = state === "failed" ? `exited ${props.entry.info.exit_code ?? "?"}` : WORDS[state];
  return (
    <span class={`state ${state}`} title={word}>
      <svg width="12" height="12" viewBox="0 0 12 12" fill="currentColor" aria-hidden="true">
        <Shape state={state} />
      </svg>
      {props.word ? <span>{word}</span> : state === "failed" ? <b>{props.entry.info.exit_code}</b> : null}
      {!props.word && <span class="unseen">{word}</span>}
    </span>
  );
}
