// Keys of the page itself. All of them use Ctrl or Alt with another key that shells do not need, and are listed in the palette.
import { choose, creating, inspector, paletteOpen, selected, shown, view } from "./store";
import { zoom } from "./theme";

export interface Shortcut {
  keys: string;
  does: string;
  run: () => void;
}

function step(by: number): void {
  const names = shown.value.map((entry) => entry.info.name);
  const at = names.indexOf(selected.value ?? "");
  const next = names[(at + by + names.length) % names.length];
  if (next !== undefined) choose(next);
}

export const SHORTCUTS: readonly Shortcut[] = [
  { keys: "Ctrl+K", does: "Command palette", run: () => (paletteOpen.value = !paletteOpen.value) },
  { keys: "Alt+N", does: "New session", run: () => (creating.value = true) },
  { keys: "Alt+G", does: "Grid of all sessions", run: () => (view.value = view.value === "grid" ? "single" : "grid") },
  { keys: "Alt+Q", does: "Sessions that want attention", run: () => (view.value = "queue") },
  { keys: "Alt+S", does: "Search", run: () => (view.value = "search") },
  { keys: "Alt+I", does: "Show or hide the inspector", run: () => (inspector.value = inspector.value ? null : "commands") },
  { keys: "Alt+ArrowUp", does: "Previous session", run: () => step(-1) },
  { keys: "Alt+ArrowDown", does: "Next session", run: () => step(1) },
  { keys: "Ctrl+=", does: "Larger type", run: () => zoom(1) },
  { keys: "Ctrl+-", does: "Smaller type", run: () => zoom(-1) },
];

function matches(event: KeyboardEvent, keys: string): boolean {
  const parts = keys.split("+");
  const key = parts.pop() ?? "";
  return (
    event.ctrlKey === parts.includes("Ctrl") &&
    event.altKey === parts.includes("Alt") &&
    !event.metaKey &&
    (event.key.toLowerCase() === key.toLowerCase() || event.code === `Key${key.toUpperCase()}`)
  );
}

export function listenToKeys(): void {
  // In the capture phase, before the emulator sees them.
  window.addEventListener(
    "keydown",
    (event) => {
      const found = SHORTCUTS.find((shortcut) => matches(event, shortcut.keys));
      if (!found) return;
      event.preventDefault();
      event.stopPropagation();
      found.run();
    },
    true,
  );
}
