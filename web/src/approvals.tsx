// Requests of agents that wait for a person: the card as the server made it, the time left, and what became of the last ones.
import { computed, effect, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, listApprovals } from "./api";
import { AnswerButtons } from "./answer";
import { choose, connection, tell } from "./store";

export interface Badge {
  name: string;
  title: string;
  sentence: string;
  hold: boolean;
}

export interface Press {
  name: "once" | "session" | "always" | "edit" | "decline";
  text: string;
  hold: boolean;
  says: string;
}

export interface Proposal {
  rule: string;
  says: string;
  wider: { rule: string; says: string; also: string[] }[];
  headless_says: string;
}

export interface Evidence {
  title: string;
  place_name: string;
  command: string;
  argv: string[];
  script: string[];
  cwd: string;
  executable: string | null;
  executable_sha256: string | null;
  env: string[];
  rule: string | null;
  hold: boolean;
  presses: Press[];
  editable: string | null;
  always: Proposal | null;
  policy_file: string | null;
}

export interface Approval {
  id: string;
  trace_id: string;
  request_id: string;
  kind: "run" | "open" | "send" | "hook" | "hidden";
  /** Of a hidden prompt: where it stands. */
  session: string | null;
  command: string;
  cwd: string | null;
  asker: string;
  risk: string;
  badges: Badge[];
  reasons: string[];
  note: string | null;
  place: "window" | "server";
  /** The other machine that it is of. */
  host: string | null;
  since: number;
  deadline: number;
  state: string;
  by: string | null;
  where: string | null;
  scope: string | null;
  reason: string | null;
  edited: boolean;
  ended: number | null;
  digest: string | null;
  evidence: Evidence | null;
  answerable: boolean;
  run: { running: boolean; exit_code: number | null; terminated: boolean; session: string | null; output?: string } | null;
}

const EVERY_MS = 1000;
/** A press so soon after a card has moved was meant for what was there before. */
const SETTLE_MS = 600;
const HIDDEN_TURNS = 5;

export const approvals = signal<readonly Approval[]>([]);
/** Whether the user lets this page answer. */
export const answersHere = signal(false);
/** How far this device's clock is ahead of the server's, in seconds: deadlines are told by the server's. */
let ahead = 0;
const serverTime = (): number => Date.now() / 1000 - ahead;
const now = signal(serverTime());
const waits = computed(() => approvals.value.filter((one) => one.state === "waiting"));
export const waitingApprovals = (): readonly Approval[] => waits.value;

let last = "";
let look: Promise<void> | null = null;
let lookAfter: Promise<void> | null = null;

/** Ends after a look that began after the call. One at a time: an older answer would bring back what was answered meanwhile. */
export function lookAtApprovals(): Promise<void> {
  if (look === null) return (look = lookOnce().finally(() => (look = null)));
  lookAfter ??= look.then(() => {
    lookAfter = null;
    return lookAtApprovals();
  });
  return lookAfter;
}

async function lookOnce(): Promise<void> {
  if (connection.peek() !== "connected") return;
  try {
    const found = await listApprovals<{ requests: Approval[]; answered_in: string[]; now: number }>();
    ahead = Date.now() / 1000 - found.now;
    now.value = found.now;
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
    if (waits.peek().length > 0) now.value = serverTime();
    if (document.visibilityState === "visible" || ++turn % HIDDEN_TURNS === 0) void lookAtApprovals();
  }, EVERY_MS);
  document.addEventListener("visibilitychange", () => void lookAtApprovals());
  connection.subscribe(() => void lookAtApprovals());
  effect(() => {
    document.title = waits.value.length > 0 ? `(${waits.value.length}) wsh` : "wsh";
  });
}

const KINDS = { run: "Run a command", open: "Open a terminal", send: "Type into a terminal", hook: "Let a program run a command", hidden: "Type at a hidden prompt" };

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

/** Where, then as what, then for whom, then why it is risky. Ids and hashes fold away. */
function Facts(props: { approval: Approval }) {
  const { approval } = props;
  const { evidence } = approval;
  return (
    <>
      <dl class="facts">
        <Fact name="in">
          <code>{evidence?.cwd ?? approval.cwd ?? "its terminal"}</code>
        </Fact>
        {approval.host && <Fact name="on">{approval.host}</Fact>}
        {evidence && <Fact name="runs in">{evidence.place_name}</Fact>}
        {evidence?.executable && (
          <Fact name="program">
            <code>{evidence.executable}</code>
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
        {approval.note && (
          <Fact name="it says">
            <q class="claim">
              <bdi>{approval.note}</bdi>
            </q>{" "}
            <span class="soft">(the agent's own words, not checked)</span>
          </Fact>
        )}
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
      <details class="ids">
        <summary>Ids and hashes</summary>
        <code class="line">trace {approval.trace_id}</code>
        <code class="line">request {approval.id}</code>
        {evidence?.executable_sha256 && <code class="line">sha256 {evidence.executable_sha256}</code>}
      </details>
    </>
  );
}

/** Whether all of an element was in view, from its top to its end without a gap. */
function useSeen(what: { current: HTMLElement | null }): boolean {
  const [seen, setSeen] = useState(false);
  const to = useRef(0);
  useEffect(() => {
    if (seen) return;
    const look = (): void => {
      if (!what.current || document.visibilityState !== "visible") return;
      const box = what.current.getBoundingClientRect();
      const from = -box.top;
      if (from <= to.current + 1) to.current = Math.max(to.current, from + window.innerHeight);
      if (box.height > 0 && to.current >= box.height - 1) setSeen(true);
    };
    const timer = setInterval(look, 300);
    document.addEventListener("scroll", look, { capture: true, passive: true });
    look();
    return () => {
      clearInterval(timer);
      document.removeEventListener("scroll", look, { capture: true });
    };
  }, [seen]);
  return seen;
}

/** Takes no press of a pointer just after the card has moved because one above it went: it was aimed at that one. Scrolling is the person's own doing. */
function useAim(card: { current: HTMLElement | null }): (event: MouseEvent) => void {
  const top = useRef<number | null>(null);
  const movedAt = useRef(-SETTLE_MS);
  useLayoutEffect(() => {
    const now = card.current?.offsetTop ?? 0;
    if (top.current !== null && top.current !== now) movedAt.current = performance.now();
    top.current = now;
  });
  return (event) => {
    const byKey = event.type === "click" && event.detail === 0;
    if (byKey || performance.now() - movedAt.current > SETTLE_MS || !(event.target instanceof Element && event.target.closest("button"))) return;
    event.stopPropagation();
    event.preventDefault();
    if (event.type === "click") tell("The requests moved as you pressed. Look, and press again.");
  };
}

function Waiting(props: { approval: Approval }) {
  const { approval } = props;
  const { evidence } = approval;
  const card = useRef<HTMLLIElement>(null);
  const aim = useAim(card);
  const shown = useRef<HTMLDivElement>(null);
  const seen = useSeen(shown);
  const grave = evidence?.hold ?? approval.risk !== "none";
  const soon = approval.deadline - now.value <= 15;
  return (
    <li ref={card} onClickCapture={aim} onPointerDownCapture={aim} data-request={approval.id} class={`approval${grave ? " grave" : ""}`} aria-label={`${grave ? "Hard to take back" : "Request"}: ${approval.command}`}>
      <div ref={shown}>
        <header>
          {approval.risk !== "none" && (
            <span class="risk">
              <Shield /> {approval.risk}
            </span>
          )}
          {approval.badges.map((badge) => (
            <span key={badge.name} class={badge.hold ? "risk" : "badge"}>
              {badge.title}
            </span>
          ))}
          {!grave && approval.badges.length === 0 && <span class="verdict waiting">waiting</span>}
          <b>{evidence?.title ?? KINDS[approval.kind]}</b>
          <span class="push" />
          <span class={soon ? "left soon" : "left soft"} role="timer">
            {left(approval)}
          </span>
        </header>
        <pre tabIndex={0} aria-label="Command">
          <bdi>{evidence ? evidence.command : approval.command || "a shell"}</bdi>
        </pre>
        {evidence && evidence.script.length > 1 && (
          <>
            <p class="soft">The script, line by line:</p>
            <pre tabIndex={0} aria-label="Script">
              {evidence.script.map((line, at) => (
                <bdi key={at} class="line">
                  {line || " "}
                </bdi>
              ))}
            </pre>
          </>
        )}
        {approval.badges.map((badge) => (
          <p key={badge.name} class={badge.hold ? "why" : ""}>
            {badge.sentence}
          </p>
        ))}
        <Facts approval={approval} />
      </div>
      {approval.session !== null && (
        <button type="button" onClick={() => choose(approval.session ?? "")}>
          Type it myself
        </button>
      )}
      {approval.answerable ? <AnswerButtons key={approval.digest} approval={approval} seen={seen} /> : <Elsewhere approval={approval} />}
    </li>
  );
}

function Elsewhere(props: { approval: Approval }) {
  if (!answersHere.value) return null;
  return (
    <p class="soft">
      {props.approval.evidence
        ? "The desktop program takes no answers from the page: run `wsh approvals on` there, too, and start it anew."
        : "The desktop program is still looking at it…"}
    </p>
  );
}

/** State, output and exit of what was approved, with the way to its session. */
function Ran(props: { run: NonNullable<Approval["run"]> }) {
  const { run } = props;
  const state = run.running ? "runs" : run.terminated ? "terminated" : `exit ${run.exit_code ?? "unknown"}`;
  return (
    <>
      <p class="soft">
        <span class={`verdict ${run.running ? "waiting" : run.exit_code === 0 ? "approved" : "declined"}`}>{state}</span>{" "}
        {run.session && (
          <button type="button" class="link" onClick={() => choose(run.session ?? "")}>
            Watch session {run.session}
          </button>
        )}
      </p>
      {run.output && (
        <pre tabIndex={0} aria-label="Output" class="ran">
          {run.output}
        </pre>
      )}
    </>
  );
}

function Over(props: { approval: Approval }) {
  const { approval } = props;
  const how = [approval.scope && approval.scope !== "once" ? `for ${approval.scope}` : "", approval.edited ? "edited" : ""].filter(Boolean);
  return (
    <li class="approval over" data-request={approval.id}>
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
              {approval.where && ` (${approval.where})`}
              {how.length > 0 && `, ${how.join(", ")}`}
              {approval.reason && ": "}
            </>
          )}
          {approval.reason && <bdi>{approval.reason}</bdi>}
        </p>
      )}
      {approval.run && <Ran run={approval.run} />}
    </li>
  );
}

export function Approvals() {
  const over = approvals.value.filter((one) => one.state !== "waiting").slice(0, 5);
  if (waits.value.length === 0 && over.length === 0) return null;
  return (
    <section class="approvals" aria-label="Approvals">
      <h2>Agents ask</h2>
      {!(waits.value.length > 0 && (answersHere.value || waits.value.every((one) => one.answerable))) && (
        <p class="soft">
          {waits.value.length > 0
            ? "These wait for you in the desktop program (interactive-terminal, or wsh desktop). Approve or decline there; after `wsh approvals on`, here, too."
            : "No agent waits for an answer. The last answers:"}
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
