// A person's answer to a request: once, for the session, for good with the rule that will be written, other words, or no. What destroys is held.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { answerApproval, ApiError, type AnswerBody } from "./api";
import { lookAtApprovals, type Approval } from "./approvals";
import { tell } from "./store";

const HOLD_MS = 1000;
type Mode = "choose" | "always" | "edit" | "decline";

/** Whether a pointer is still over what it was put on. A finger's events go there wherever it has moved to. */
function isOver(event: PointerEvent & { currentTarget: HTMLElement }): boolean {
  const box = event.currentTarget.getBoundingClientRect();
  return event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
}

/** A button that counts only when it was held for a second, by pointer or by key. A stray click or Enter does nothing, nor does a finger that moves on. */
export function HoldButton(props: { onHeld: () => void; disabled?: boolean; children: ComponentChildren }) {
  const [holding, setHolding] = useState(false);
  const timer = useRef(0);
  const begin = (): void => {
    if (timer.current || props.disabled) return;
    setHolding(true);
    timer.current = window.setTimeout(() => {
      end();
      props.onHeld();
    }, HOLD_MS);
  };
  const end = (): void => {
    clearTimeout(timer.current);
    timer.current = 0;
    setHolding(false);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <button
      type="button"
      class={`hold${holding ? " holding" : ""}`}
      title="Hold for a second: this is hard to take back"
      disabled={props.disabled}
      onPointerDown={(event) => event.button === 0 && begin()}
      onPointerMove={(event) => isOver(event) || end()}
      onPointerUp={end}
      onPointerLeave={end}
      onPointerCancel={end}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        begin();
      }}
      onKeyUp={end}
      onBlur={end}
    >
      {props.children}
    </button>
  );
}

const FIELD: Record<Exclude<Mode, "choose">, [string, string]> = {
  always: ["The rule that will be written", "Rule"],
  edit: ["The command to run instead", "Command to run instead"],
  decline: ["Why not? The caller is told", "Reason"],
};

/** Draws what the card says may be pressed, and nothing else. Nothing runs before all of the evidence was in view. */
export function AnswerButtons(props: { approval: Approval; seen: boolean }) {
  const { approval, seen } = props;
  const evidence = approval.evidence;
  const [mode, setMode] = useState<Mode>("choose");
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [mustHold, setMustHold] = useState(false);
  const [busy, setBusy] = useState(false);
  const [headless, setHeadless] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), [mode]);
  if (!evidence) return null;
  const grave = evidence.hold;
  const exact = evidence.always?.rule ?? "";
  const widening = evidence.always?.wider.find((one) => one.rule === text);

  const answer = async (body: Omit<AnswerBody, "digest">): Promise<void> => {
    setBusy(true);
    setProblem("");
    try {
      const end = await answerApproval<Approval>(approval.id, { digest: approval.digest ?? "", ...body });
      const where = approval.place === "server" ? "in a session here" : "in the desktop program";
      tell(end.state === "approved" ? `Approved. It runs ${where}.` : "Declined. The caller is told.");
    } catch (bad) {
      if (bad instanceof ApiError) {
        if (bad.code === "confirmation_needed") setMustHold(true);
        // The card goes when it is settled; what is said must outlive it.
        if (bad.code === "approval_settled") tell(bad.message, bad.hint, true);
        setProblem([bad.message, bad.hint && bad.code !== "confirmation_needed" ? bad.hint : ""].filter(Boolean).join(" "));
      } else setProblem(String(bad));
    }
    // Until what became of it is shown, a second press would answer what is answered.
    await lookAtApprovals();
    setBusy(false);
  };
  const ask = (to: Mode, start: string): void => {
    setMode(to);
    setText(start);
    setProblem("");
    setMustHold(to === "edit" && grave);
  };
  const finish = (held: boolean): void => {
    if (mode === "decline") void answer({ decision: "decline", ...(text ? { reason: text } : {}) });
    else if (mode === "always")
      void answer({ decision: "approve", scope: "always", ...(text === exact ? {} : { rule: text }), ...(headless ? { headless } : {}) });
    else void answer({ decision: "approve", command: text, ...(held ? { confirm: true } : {}) });
  };

  return (
    <div class="answer">
      {mode !== "choose" && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (!mustHold) finish(false);
          }}
        >
          <input
            ref={field}
            class={mode === "decline" ? "" : "mono"}
            aria-label={FIELD[mode][1]}
            placeholder={FIELD[mode][0]}
            value={text}
            spellcheck={mode === "decline"}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setMustHold(mode === "edit" && grave);
              setProblem("");
            }}
            onKeyDown={(event) => event.key === "Escape" && setMode("choose")}
          />
          {mode === "always" && evidence.always && (
            <>
              <p class="soft">
                Writes to <code>{evidence.policy_file}</code>:
                <code class="rule">
                  {`[[rule]]\neffect = "allow"\ncommand = ${JSON.stringify(text)}\n${text === exact ? "exact = true\n" : ""}${headless ? "" : 'modes = ["interactive"]'}`}
                </code>
                {text === exact ? evidence.always.says : (widening?.says ?? "Wider or other than what was asked.")}
              </p>
              <div class="choices">
                {evidence.always.wider.map((one) => (
                  <button key={one.rule} type="button" title={one.says} onClick={() => setText(one.rule)}>
                    Widen to <code>{one.rule}</code>
                  </button>
                ))}
              </div>
              <label>
                <input type="checkbox" checked={headless} onChange={(event) => setHeadless(event.currentTarget.checked)} /> Headless, too.{" "}
                <span class="soft">{evidence.always.headless_says}</span>
              </label>
            </>
          )}
        </form>
      )}
      {problem && (
        <p class="why" role="alert">
          {problem}
        </p>
      )}
      <div class="choices">
        {mode === "choose" ? (
          <>
            {!seen && <span class="soft">Look through all of it first.</span>}
            {evidence.presses
              .filter((press) => press.name !== "decline")
              .map((press) =>
                press.name === "once" && press.hold ? (
                  <HoldButton key={press.name} disabled={busy || !seen} onHeld={() => void answer({ decision: "approve", confirm: true })}>
                    {press.text}
                  </HoldButton>
                ) : (
                  <button
                    key={press.name}
                    class={press.name === "once" ? "primary" : ""}
                    title={press.says}
                    disabled={busy || !seen}
                    onClick={() => {
                      if (press.name === "always") ask("always", exact);
                      else if (press.name === "edit") ask("edit", evidence.editable ?? "");
                      else void answer({ decision: "approve", ...(press.name === "session" ? { scope: "session" as const } : {}) });
                    }}
                  >
                    {press.text}
                  </button>
                ),
              )}
            <span class="push" />
            <button disabled={busy} onClick={() => void answer({ decision: "decline" })}>
              Decline
            </button>
            <button disabled={busy} onClick={() => ask("decline", "")}>
              Decline with a reason…
            </button>
          </>
        ) : (
          <>
            {mustHold ? (
              <HoldButton disabled={busy} onHeld={() => finish(true)}>
                Hold to run this instead
              </HoldButton>
            ) : (
              <button class="primary" disabled={busy} onClick={() => finish(false)}>
                {mode === "decline" ? "Decline" : mode === "always" ? "Write rule and run" : "Run this instead"}
              </button>
            )}
            <button onClick={() => setMode("choose")}>Back</button>
          </>
        )}
      </div>
    </div>
  );
}
