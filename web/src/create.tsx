import { useLayoutEffect, useRef } from "preact/hooks";
import { create, creating, room } from "./store";

export function CreateDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="dialog" onClose={() => (creating.value = false)} aria-labelledby="create-title">
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
          void create(Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)));
        }}
      >
        <h2 id="create-title">New session</h2>
        <label>
          Command
          <input name="command" class="mono" placeholder="your shell" autofocus autocomplete="off" spellcheck={false} />
        </label>
        <label>
          Working directory
          <input name="cwd" class="mono" placeholder="where the server was started" autocomplete="off" spellcheck={false} />
        </label>
        <div class="two">
          <label>
            Name
            <input name="name" class="mono" placeholder="made up" pattern="[A-Za-z0-9._][A-Za-z0-9._\-]{0,63}" autocomplete="off" />
          </label>
          <label>
            Tags
            <input name="tags" class="mono" placeholder="none" autocomplete="off" />
          </label>
        </div>
        <div class="two">
          <label>
            Rows
            <input name="rows" type="number" min={1} max={1000} placeholder={String(room.value?.rows ?? 24)} />
          </label>
          <label>
            Columns
            <input name="cols" type="number" min={1} max={1000} placeholder={String(room.value?.cols ?? 80)} />
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
