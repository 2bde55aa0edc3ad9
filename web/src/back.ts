// The way back of a phone, a gesture or a button, closes what lies over the terminal, one after the other, before it leaves the page.
import { computed, effect } from "@preact/signals";
import { finding, inspector, narrow, sidebarOpen, view } from "./store";

/** What can be closed, the topmost first. */
const LAYERS: [isOpen: () => boolean, close: () => void][] = [
  [() => sidebarOpen.value, () => (sidebarOpen.value = false)],
  [() => view.value !== "single", () => (view.value = "single")],
  [() => finding.value, () => (finding.value = false)],
  [() => inspector.value !== null, () => (inspector.value = null)],
];
const depth = computed(() => (narrow.value ? LAYERS.filter(([isOpen]) => isOpen()).length : 0));

export function followBack(): void {
  /** Entries of ours in the browser's history. */
  let entered = 0;
  /** Steps back that this page took itself. */
  let own = 0;
  effect(() => {
    const now = depth.value;
    for (; entered < now; entered++) history.pushState({ wsh: entered + 1 }, "");
    if (entered === now) return;
    own++;
    history.go(now - entered);
    entered = now;
  });
  addEventListener("popstate", () => {
    if (own > 0) {
      own--;
      // Something was opened while the step was under way: its entry is gone with it.
      for (; entered < depth.peek(); entered++) history.pushState({ wsh: entered + 1 }, "");
      return;
    }
    if (entered === 0) return;
    entered--;
    LAYERS.find(([isOpen]) => isOpen())?.[1]();
  });
}
