import { effect, signal } from "@preact/signals";
import { Admin } from "./admin";
import { waitingApprovals } from "./approvals";
import { AskDialog, CreateDialog } from "./create";
import { Inspector } from "./inspector";
import { Palette } from "./palette";
import { Hint, Sheet } from "./sheet";
import { grant, permission, setPermission, wish } from "./clipboard";
import { Replay } from "./replay";
import { Search } from "./search";
import { Sidebar } from "./sidebar";
import { layoutsOpen } from "./layout";
import { Layouts, Splits } from "./split";
import { Grid, Queue } from "./stage";
import { awayHeeded, connection, creating, current, dismiss, inspector, paletteOpen, question, sheetOpen, sidebarOpen, toasts, view } from "./store";
import { pasting } from "./terminal";

export function App() {
  if (connection.value === "signed-out") return <SignIn />;
  return (
    <div class={`page${sidebarOpen.value ? " sidebar-open" : ""}${inspector.value && view.value === "single" ? " inspecting" : ""}`}>
      <Sidebar />
      <main class="stage" onClick={() => (sidebarOpen.value = false)}>
        {(view.value !== "single" || !current.value) && (
          <div class="phone-bar">
            <button aria-label="Sessions" onClick={(event) => (event.stopPropagation(), (sidebarOpen.value = true))}>
              ☰
            </button>
            {view.value !== "single" && <button onClick={() => (view.value = "single")}>Back to the terminal</button>}
          </div>
        )}
        <Stage />
      </main>
      {inspector.value && view.value === "single" && <Inspector />}
      {paletteOpen.value && <Palette />}
      {sheetOpen.value && <Sheet />}
      <Hint />
      {creating.value && <CreateDialog />}
      {question.value !== null && <AskDialog question={question.value} />}
      {layoutsOpen.value && <Layouts />}
      <div class="toasts" role="status" aria-live="polite">
        <Pasting />
        <Wish />
        {toasts.value.map((toast) => (
          <div key={toast.id} class={`toast told${toast.bad ? " bad" : ""}`}>
            <button onClick={() => (toast.act?.(), dismiss(toast.id))} title={toast.act ? "Open" : "Dismiss"}>
              <span>{toast.text}</span>
              {toast.hint && <small>{toast.hint}</small>}
            </button>
            <button aria-label="Dismiss" onClick={() => dismiss(toast.id)}>
              ×
            </button>
          </div>
        ))}
      </div>
      <Notice />
    </div>
  );
}

/** Requests whose notice was dismissed; they wait in the queue as before. */
const heeded = signal<readonly string[]>([]);
effect(() => {
  if (connection.value === "connected") awayHeeded.value = false;
});

/** The one thing that is so for a while and should be known: it has room of its own and covers nothing. */
function Notice() {
  const asking = waitingApprovals().filter((one) => !heeded.value.includes(one.id));
  const close = (heed: () => void) => (
    <button aria-label="Dismiss" onClick={heed}>
      ×
    </button>
  );
  if (connection.value !== "connected" && !awayHeeded.value)
    return (
      <div class="notice banner">
        <span role="status">
          {connection.value === "connecting" ? "Connecting…" : "The server does not answer. What you type is kept, and sent when the server is back."}
        </span>
        {close(() => (awayHeeded.value = true))}
      </div>
    );
  if (view.value === "queue" || asking.length === 0) return null;
  return (
    <div class="notice asking">
      <button class="asks" onClick={() => (view.value = "queue")}>
        {asking.length === 1 ? "An agent asks" : `Agents ask ${asking.length} times`} for your approval. Show
      </button>
      {close(() => (heeded.value = waitingApprovals().map((one) => one.id)))}
    </div>
  );
}

/** How far a large paste has come. */
function Pasting() {
  const now = pasting.value;
  if (!now) return null;
  return (
    <div class="toast">
      <span>
        Pasting into <bdi>{now.name}</bdi>: {Math.floor(now.share * 100)} %
      </span>
      <progress aria-label="Paste" max={1} value={now.share} />
      <button onClick={now.stop}>Stop</button>
    </div>
  );
}

/** A program wants to write the clipboard. */
function Wish() {
  const now = wish.value;
  if (!now || permission.value === "never") return null;
  return (
    <div class="toast">
      <span>
        <bdi>{now.session}</bdi> wants to put {now.text.length} characters on your clipboard.
      </span>
      <code class="wish">
        <bdi>{now.text.slice(0, 80)}</bdi>
      </code>
      <div class="choices">
        <button onClick={() => void grant(now.session, now.text)}>Allow once</button>
        <button onClick={() => (setPermission("allow"), void grant(now.session, now.text))}>Always</button>
        <button onClick={() => (wish.value = null)}>Not now</button>
        <button onClick={() => (setPermission("never"), (wish.value = null))}>Never</button>
      </div>
    </div>
  );
}

function Stage() {
  switch (view.value) {
    case "grid":
      return <Grid />;
    case "queue":
      return <Queue />;
    case "search":
      return <Search />;
    case "admin":
      return <Admin />;
    case "replay":
      return <Replay />;
    default:
      return <Splits />;
  }
}

function SignIn() {
  return (
    <main class="sign-in">
      <h1>wsh</h1>
      <p>This browser is not signed in, or the token was changed.</p>
      <p>Open the link that this command prints. It works once:</p>
      <pre>wsh link</pre>
      <p class="soft">The server prints such a link at its start, too.</p>
    </main>
  );
}
