// Requests of agents that wait for a person in the desktop program. Shown here, answered there.
import { signal } from "@preact/signals";
import { get } from "./api";
import { connection } from "./store";

export interface Approval {
  trace_id: string;
  request_id: string;
  kind: "run" | "open" | "send";
  command: string;
  cwd: string | null;
  asker: string;
  risk: string;
  reasons: string[];
  since: number;
  deadline: number;
  state: string;
  by: string | null;
  ended: number | null;
}

const EVERY_MS = 2000;

export const approvals = signal<readonly Approval[]>([]);
export const waitingApprovals = (): readonly Approval[] => approvals.value.filter((one) => one.state === "waiting");

/** Ask while somebody can see the answer. */
export function followApprovals(): void {
  let last = "";
  const look = async (): Promise<void> => {
    if (connection.peek() !== "connected" || document.visibilityState !== "visible") return;
    try {
      const { requests } = await get<{ requests: Approval[] }>("/approvals");
      const text = JSON.stringify(requests);
      // While one waits its time runs down, so it is drawn again.
      if (text !== last || requests.some((one) => one.state === "waiting")) approvals.value = requests;
      last = text;
    } catch {
      // the banner already says that the server is gone
    }
  };
  setInterval(() => void look(), EVERY_MS);
  connection.subscribe(() => void look());
}

const KINDS = { run: "Run a command", open: "Open a terminal", send: "Type into a terminal" };

function One(props: { approval: Approval }) {
  const { approval } = props;
  const waits = approval.state === "waiting";
  const left = Math.max(0, Math.round(approval.deadline - Date.now() / 1000));
  const grave = approval.risk === "destructive" || approval.risk === "irrecoverable";
  return (
    <li class={`approval${grave ? " grave" : ""}${waits ? "" : " over"}`}>
      <header>
        <span class={`verdict ${waits ? "waiting" : approval.state}`}>{waits ? "waiting" : approval.state}</span>
        <b>{KINDS[approval.kind]}</b>
        <span class="push" />
        <span class="soft">{waits ? `${left} s left` : new Date((approval.ended ?? 0) * 1000).toLocaleTimeString()}</span>
      </header>
      {approval.command && (
        <pre tabIndex={0} aria-label="Command">
          <bdi>{approval.command}</bdi>
        </pre>
      )}
      <p class="soft">
        in <code>{approval.cwd ?? "its terminal"}</code>, asked by <bdi>{approval.asker}</bdi>
        {approval.by && (
          <>
            , answered by <bdi>{approval.by}</bdi>
          </>
        )}
      </p>
      {approval.reasons.length > 0 && <p class="why">{approval.reasons.join("; ")}</p>}
    </li>
  );
}

export function Approvals() {
  const waits = waitingApprovals();
  const over = approvals.value.filter((one) => one.state !== "waiting").slice(0, 5);
  if (waits.length === 0 && over.length === 0) return null;
  return (
    <section class="approvals" aria-label="Approvals">
      <h2>Agents ask</h2>
      <p class="soft">
        {waits.length > 0
          ? "These wait for you in the desktop program (interactive-terminal, or wsh desktop). Approve or decline there."
          : "Nothing waits. The last answers:"}
      </p>
      <ul>
        {[...waits, ...over].map((one) => (
          <One key={one.request_id} approval={one} />
        ))}
      </ul>
    </section>
  );
}
