import { useLayoutEffect, useRef } from "preact/hooks";
import { create, creating, draft, question, room, selected, view, whenClosed, type Question, type Reason } from "./store";
import { focusTerminal } from "./terminal";

/** The fields that a refusal is about, by its code; any other is about the command. */
const FIELDS: Record<string, string> = { invalid_session_name: "name", session_name_conflict: "name", invalid_tag: "tags", cwd_not_found: "cwd" };

export function CreateDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const why = draft.value?.why;
  const faulty = why && (FIELDS[why.code ?? ""] ?? "command");
  /** The field that is at fault has the keyboard, and says why. */
  const state = (name: string) => ({
    autofocus: name === (faulty ?? "command"),
    ...(name === faulty ? { "aria-invalid": true, "aria-describedby": "create-why" } : {}),
  });
  const before = (name: string): string => {
    const value = draft.value?.wanted[name];
    return Array.isArray(value) ? value.join(" ") : String(value ?? "");
  };
  return (
    <dialog ref={dialog} class="dialog" {...whenClosed(() => ((creating.value = false), (draft.value = null)))} aria-labelledby="create-title">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const data = new FormData(event.currentTarget);
          const text = (name: string): string | undefined => String(data.get(name) ?? "").trim() || undefined;
          const number = (name: string): number | undefined => (text(name) ? Number(text(name)) : undefined);
          const wanted: Record<string, unknown> = {
            name: text("name"),
            command: text("command"),
            cwd: text("cwd"),
            rows: number("rows"),
            cols: number("cols"),
            tags: text("tags")?.split(/[\s,]+/),
          };
          // It goes at once, and the keys wait for the session; if there will be none, it comes back as it was, with the reason.
          let reason: Reason | undefined;
          dialog.current?.close();
          creating.value = false;
          void create(Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)), (problem) => (reason = problem)).then((made) => {
            if (made) return;
            draft.value = { wanted, why: reason };
            creating.value = true;
          });
        }}
      >
        <h2 id="create-title">New session</h2>
        {why && (
          <p id="create-why" class="why" role="alert">
            {why.text} {why.hint}
          </p>
        )}
        <label>
          Command
          <input name="command" defaultValue={before("command")} class="mono" placeholder="your shell" {...state("command")} autocomplete="off" spellcheck={false} />
        </label>
        <label>
          Working directory
          <input name="cwd" defaultValue={before("cwd")} class="mono" placeholder="where the server was started" {...state("cwd")} autocomplete="off" spellcheck={false} />
        </label>
        <div class="two">
          <label>
            Name
            <input
              name="name"
              defaultValue={before("name")}
              class="mono"
              placeholder="made up"
              pattern="[A-Za-z0-9._][A-Za-z0-9._\-]{0,63}"
              title="1 to 64 letters, digits, '-', '_' or '.', and no '-' in front"
              {...state("name")}
              autocomplete="off"
            />
          </label>
          <label>
            Tags
            <input name="tags" defaultValue={before("tags")} class="mono" placeholder="none" {...state("tags")} autocomplete="off" />
          </label>
        </div>
        <div class="two">
          <label>
            Rows
            <input name="rows" defaultValue={before("rows")} type="number" min={1} max={1000} placeholder={String(room.value?.rows ?? 24)} />
          </label>
          <label>
            Columns
            <input name="cols" defaultValue={before("cols")} type="number" min={1} max={1000} placeholder={String(room.value?.cols ?? 80)} />
          </label>
        </div>
        <footer>
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button class="primary" type="submit">
            Start
          </button>
        </footer>
      </form>
    </dialog>
  );
}

/** Asks one thing. It has the keyboard at once, and gives it back to the terminal with the answer. */
export function AskDialog(props: { question: Question }) {
  const { title, label, text, says, does, grave, then } = props.question;
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const toTerminal = (): void => {
    if (view.peek() === "single") focusTerminal(selected.peek() ?? "");
  };
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    field.current?.select();
    return () => {
      // While it is open nothing else takes the keyboard.
      shown?.close();
      toTerminal();
    };
  }, []);
  return (
    <dialog ref={dialog} class="dialog" {...whenClosed(() => (question.value = null))} aria-labelledby="ask-title">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const answer = field.current?.value.trim() ?? "";
          // Closed at once: the next key is no longer its.
          dialog.current?.close();
          question.value = null;
          toTerminal();
          then(answer);
        }}
        // The key that opened it may still be down: it answers nothing.
        onKeyDown={(event) => event.key === "Enter" && event.repeat && event.preventDefault()}
      >
        <h2 id="ask-title">
          <bdi>{title}</bdi>
        </h2>
        {says && <p class="soft">{says}</p>}
        {label && (
          <label>
            {label}
            <input ref={field} class="mono" defaultValue={text} autofocus autocomplete="off" autocapitalize="off" spellcheck={false} />
          </label>
        )}
        <footer>
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button class={grave ? "primary grave" : "primary"} type="submit" autofocus={!label}>
            {does}
          </button>
        </footer>
      </form>
    </dialog>
  );
}
