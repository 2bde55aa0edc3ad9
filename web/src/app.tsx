import { Admin } from "./admin";
import { waitingApprovals } from "./approvals";
import { CreateDialog } from "./create";
import { Inspector } from "./inspector";
import { Palette } from "./palette";
import { Replay } from "./replay";
import { Search } from "./search";
import { Sidebar } from "./sidebar";
import { Grid, Queue, Single } from "./stage";
import { connection, creating, dismiss, inspector, paletteOpen, sidebarOpen, toasts, view } from "./store";

export function App() {
  if (connection.value === "signed-out") return <SignIn />;
  return (
    <div class={`page${sidebarOpen.value ? " sidebar-open" : ""}${inspector.value && view.value === "single" ? " inspecting" : ""}`}>
      <Sidebar />
      <main class="stage" onClick={() => (sidebarOpen.value = false)}>
        {connection.value !== "connected" && (
          <div class="banner" role="status">
            {connection.value === "connecting" ? "Connecting…" : "The server does not answer. Trying again…"}
          </div>
        )}
        {view.value !== "queue" && waitingApprovals().length > 0 && (
          <button class="asks" onClick={() => (view.value = "queue")}>
            {waitingApprovals().length === 1 ? "An agent asks" : `Agents ask ${waitingApprovals().length} times`} for your approval. Show
          </button>
        )}
        {view.value !== "single" && (
          <div class="phone-bar">
            <button aria-label="Sessions" onClick={(event) => (event.stopPropagation(), (sidebarOpen.value = true))}>
              ☰
            </button>
            <button onClick={() => (view.value = "single")}>Back to the terminal</button>
          </div>
        )}
        <Stage />
      </main>
      {inspector.value && view.value === "single" && <Inspector />}
      {paletteOpen.value && <Palette />}
      {creating.value && <CreateDialog />}
      <div class="toasts" role="status" aria-live="polite">
        {toasts.value.map((toast) => (
          <button key={toast.id} class={`toast${toast.bad ? " bad" : ""}`} onClick={() => dismiss(toast.id)} title="Dismiss">
            <span>{toast.text}</span>
            {toast.hint && <small>{toast.hint}</small>}
          </button>
        ))}
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
      return <Single />;
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
