// A person's answer to a request: once, for the session, for good with the rule that will be written, other words, or no. What destroys is held.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { answerApproval, ApiError, type AnswerBody } from "./api";
import { lookAtApprovals, type Approval } from "./approvals";
import { tell } from "./store";

const HOLD_MS = 1000;
type Mode = "choose" | "always" | "edit" | "decline";

/** A button that counts only when it was held for a second, by pointer or by key. A stray click or Enter does nothing. */
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
      title="Hold for a second: this destroys something"
      disabled={props.disabled}
      onPointerDown={(event) => event.button === 0 && begin()}
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
  always: ["The rule that will be written; narrow it if you like", "Rule"],
  edit: ["The command to run instead", "Command to run instead"],
  decline: ["Why not? The caller is told", "Reason"],
};

export function AnswerButtons(props: { approval: Approval }) {
  const { approval } = props;
  const evidence = approval.evidence;
  const [mode, setMode] = useState<Mode>("choose");
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [mustHold, setMustHold] = useState(false);
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), [mode]);
  if (!evidence) return null;
  const grave = approval.risk !== "none";
  const may = (scope: "session" | "always"): boolean => evidence.scopes.includes(scope);

  const answer = async (body: Omit<AnswerBody, "digest">): Promise<void> => {
    setBusy(true);
    setProblem("");
    try {
      const end = await answerApproval<Approval>(approval.id, { digest: approval.digest ?? "", ...body });
      tell(end.state === "approved" ? "Approved. It runs in the desktop program." : "Declined. The caller is told.");
    } catch (bad) {
      if (bad instanceof ApiError) {
        if (bad.code === "confirmation_needed") setMustHold(true);
        // The card goes when it is settled; what is said must outlive it.
        if (bad.code === "approval_settled") tell(bad.message, bad.hint, true);
        setProblem([bad.message, bad.hint && bad.code !== "confirmation_needed" ? bad.hint : ""].filter(Boolean).join(" "));
      } else setProblem(String(bad));
    }
    setBusy(false);
    await lookAtApprovals();
  };
  const ask = (to: Mode, start: string): void => {
    setMode(to);
    setText(start);
    setProblem("");
    setMustHold(to === "edit" && grave);
  };
  const finish = (held: boolean): void => {
    if (mode === "decline") void answer({ decision: "decline", ...(text ? { reason: text } : {}) });
    else if (mode === "always") void answer({ decision: "approve", scope: "always", rule: text });
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
          {mode === "always" && (
            <p class="soft">
              Writes to <code>{evidence.policy_file}</code>:
              <code class="rule">{`[[rule]]\neffect = "allow"\ncommand = ${JSON.stringify(text)}`}</code>
            </p>
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
            {grave ? (
              <HoldButton disabled={busy} onHeld={() => void answer({ decision: "approve", confirm: true })}>
                Hold to run once
              </HoldButton>
            ) : (
              <button class="primary" disabled={busy} onClick={() => void answer({ decision: "approve" })}>
                {approval.kind === "open" ? "Open once" : approval.kind === "send" ? "Type once" : "Run once"}
              </button>
            )}
            {may("session") && (
              <button
                title="This exact command, until the caller goes away"
                disabled={busy}
                onClick={() => void answer({ decision: "approve", scope: "session" })}
              >
                Allow for this session
              </button>
            )}
            {may("always") && (
              <button disabled={busy} onClick={() => ask("always", evidence.always_rule ?? "")}>
                Always…
              </button>
            )}
            {evidence.editable !== null && (
              <button disabled={busy} onClick={() => ask("edit", evidence.editable ?? "")}>
                Edit…
              </button>
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
