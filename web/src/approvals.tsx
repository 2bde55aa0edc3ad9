// Requests of agents that wait for a person in the desktop program: the evidence, the time left, and what became of the last ones.
import { computed, effect, signal } from "@preact/signals";
import { ApiError, listApprovals } from "./api";
import { AnswerButtons } from "./answer";
import { connection } from "./store";

export interface Evidence {
  argv: string[];
  cwd: string;
  executable: string | null;
  executable_sha256: string | null;
  env: string[];
  risk: string;
  reasons: string[];
  rule: string | null;
  scopes: ("once" | "session" | "always")[];
  editable: string | null;
  always_rule: string | null;
  policy_file: string | null;
}

export interface Approval {
  id: string;
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
  scope: string | null;
  reason: string | null;
  edited: boolean;
  ended: number | null;
  digest: string | null;
  evidence: Evidence | null;
  answerable: boolean;
}

const EVERY_MS = 1000;
const HIDDEN_TURNS = 5;

export const approvals = signal<readonly Approval[]>([]);
/** Whether the user lets this page answer. */
export const answersHere = signal(false);
const now = signal(Date.now() / 1000);
const waits = computed(() => approvals.value.filter((one) => one.state === "waiting"));
export const waitingApprovals = (): readonly Approval[] => waits.value;

let last = "";
export async function lookAtApprovals(): Promise<void> {
  if (connection.peek() !== "connected") return;
  try {
    const found = await listApprovals<{ requests: Approval[]; answered_in: string[] }>();
    const text = JSON.stringify(found.requests);
    if (text !== last) approvals.value = found.requests;
    last = text;
    answersHere.value = found.answered_in.includes("page");
  } catch (problem) {
    // That the server is gone is said by the banner. A token that was changed ends this sign-in, also while a stream is still open.
    if (problem instanceof ApiError && problem.status === 401) connection.value = "signed-out";
  }
}

/** Every second while somebody looks; less often for the tab's title alone. */
export function followApprovals(): void {
  let turn = 0;
  setInterval(() => {
    if (waits.peek().length > 0) now.value = Date.now() / 1000;
    if (document.visibilityState === "visible" || ++turn % HIDDEN_TURNS === 0) void lookAtApprovals();
  }, EVERY_MS);
  document.addEventListener("visibilitychange", () => void lookAtApprovals());
  connection.subscribe(() => void lookAtApprovals());
  effect(() => {
    document.title = waits.value.length > 0 ? `(${waits.value.length}) wsh` : "wsh";
  });
}

const KINDS = { run: "Run a command", open: "Open a terminal", send: "Type into a terminal" };

function left(approval: Approval): string {
  const seconds = Math.max(0, Math.round(approval.deadline - now.value));
  return seconds > 90 ? `${Math.round(seconds / 60)} min left` : `${seconds} s left`;
}

function Shield() {
  return (
    <svg width="11" height="13" viewBox="0 0 11 13" fill="currentColor" aria-hidden="true">
      <path d="M5.5.5 10.5 2.5V6Q10 10.5 5.5 12.5 1 10.5.5 6V2.5z" />
    </svg>
  );
}

function Fact(props: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}

/** Where, then as what, then for whom, then why it is risky. */
function Facts(props: { approval: Approval }) {
  const { approval } = props;
  const { evidence } = approval;
  return (
    <dl class="facts">
      <Fact name="in">
        <code>{evidence?.cwd ?? approval.cwd ?? "its terminal"}</code>
      </Fact>
      {evidence?.executable && (
        <Fact name="runs">
          <code>{evidence.executable}</code>{" "}
          {evidence.executable_sha256 && <code class="soft">sha256 {evidence.executable_sha256.slice(0, 16)}…</code>}
        </Fact>
      )}
      {evidence && evidence.env.length > 0 && (
        <Fact name="sets">
          {evidence.env.map((one) => (
            <code key={one} class="line">
              {one}
            </code>
          ))}
        </Fact>
      )}
      <Fact name="asked by">
        <bdi>{approval.asker}</bdi>
      </Fact>
      <Fact name="trace">
        <code class="soft">{approval.trace_id}</code>
      </Fact>
      {evidence?.rule && (
        <Fact name="rule">
          <code>{evidence.rule}</code>
        </Fact>
      )}
      {approval.reasons.length > 0 && (
        <Fact name="because">
          {approval.reasons.map((one) => (
            <span key={one} class={approval.risk === "none" ? "line" : "line why"}>
              {one}
            </span>
          ))}
        </Fact>
      )}
    </dl>
  );
}

function Waiting(props: { approval: Approval }) {
  const { approval } = props;
  const grave = approval.risk !== "none";
  const soon = approval.deadline - now.value <= 15;
  return (
    <li class={`approval${grave ? " grave" : ""}`} aria-label={`${grave ? "Destructive request" : "Request"}: ${approval.command}`}>
      <header>
        {grave ? (
          <span class="risk">
            <Shield /> {approval.risk}
          </span>
        ) : (
          <span class="verdict waiting">waiting</span>
        )}
        <b>{KINDS[approval.kind]}</b>
        <span class="push" />
        <span class={soon ? "left soon" : "left soft"} role="timer">
          {left(approval)}
        </span>
      </header>
      <pre tabIndex={0} aria-label="Command">
        <bdi>{approval.evidence ? approval.evidence.argv.join(" ") : approval.command || "a shell"}</bdi>
      </pre>
      <Facts approval={approval} />
      {approval.answerable ? <AnswerButtons key={approval.digest} approval={approval} /> : <Elsewhere approval={approval} />}
    </li>
  );
}

function Elsewhere(props: { approval: Approval }) {
  if (!answersHere.value) return null;
  return (
    <p class="soft">
      {props.approval.evidence
        ? "The desktop program takes no answers from the page: set approvals.web there, too, and start it anew."
        : "The desktop program is still looking at it…"}
    </p>
  );
}

function Over(props: { approval: Approval }) {
  const { approval } = props;
  const how = [approval.scope && approval.scope !== "once" ? `for ${approval.scope}` : "", approval.edited ? "edited" : ""].filter(Boolean);
  return (
    <li class="approval over">
      <header>
        <span class={`verdict ${approval.state}`}>{approval.state}</span>
        <code class="what">
          <bdi>{approval.command || KINDS[approval.kind]}</bdi>
        </code>
        <span class="push" />
        <span class="soft nowrap">{new Date((approval.ended ?? 0) * 1000).toLocaleTimeString()}</span>
      </header>
      {(approval.by ?? approval.reason) && (
        <p class="soft">
          {approval.by && (
            <>
              by <bdi>{approval.by}</bdi>
              {how.length > 0 && `, ${how.join(", ")}`}
              {approval.reason && ": "}
            </>
          )}
          {approval.reason && <bdi>{approval.reason}</bdi>}
        </p>
      )}
    </li>
  );
}

export function Approvals() {
  const over = approvals.value.filter((one) => one.state !== "waiting").slice(0, 5);
  if (waits.value.length === 0 && over.length === 0) return null;
  return (
    <section class="approvals" aria-label="Approvals">
      <h2>Agents ask</h2>
      {!(waits.value.length > 0 && answersHere.value) && (
        <p class="soft">
          {waits.value.length > 0
            ? "These wait for you in the desktop program (interactive-terminal, or wsh desktop). Approve or decline there; with approvals.web = true in config.toml, here, too."
            : "Nothing waits. The last answers:"}
        </p>
      )}
      <ul>
        {waits.value.map((one) => (
          <Waiting key={one.id} approval={one} />
        ))}
        {over.map((one) => (
          <Over key={one.id} approval={one} />
        ))}
      </ul>
    </section>
  );
}
