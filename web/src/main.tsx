import "@xterm/xterm/css/xterm.css";
import "./tokens.css";
import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { signIn } from "./api";
import { followApprovals } from "./approvals";
import { followBack } from "./back";
import { followLinks } from "./block";
import { followInbox } from "./inbox";
import { followLayout } from "./layout";
import { followNotices } from "./notice";
import { selected, start } from "./store";
import { shownSize, shownText } from "./terminal";
import { followTheme } from "./theme";
import { listenToKeys } from "./shortcut";

/** Below this share of the height that it had, the keyboard of a phone is up. */
const KEYBOARD_SHARE = 0.8;

/** Of the page, what a phone's keyboard leaves to be seen, in browsers that do not shrink the page themselves: the keys stay above it. */
function followKeyboard(): void {
  const seen = window.visualViewport;
  /** The greatest height at each width: upright, and sideways. */
  const tallest = new Map<number, number>();
  const look = (): void => {
    if (!seen) return;
    const covered = seen.scale === 1 && seen.height < window.innerHeight - 1;
    document.documentElement.style.setProperty("--seen-height", covered ? `${seen.height}px` : "100%");
    const [width, height] = [Math.round(seen.width * seen.scale), seen.height * seen.scale];
    tallest.set(width, Math.max(tallest.get(width) ?? 0, height));
    document.documentElement.classList.toggle("typing", height < (tallest.get(width) ?? 0) * KEYBOARD_SHARE);
    if (covered) window.scrollTo(0, 0);
  };
  seen?.addEventListener("resize", look);
  look();
}

followKeyboard();
followTheme();
followLayout();
followBack();
listenToKeys();
window.addEventListener("hashchange", followLinks);
void signIn().finally(() => {
  followLinks();
  start();
  followApprovals();
  followInbox();
  void followNotices();
});
render(<App />, document.getElementById("app") as HTMLElement);

declare global {
  interface Window {
    wshText: () => string;
    wshSize: () => { rows: number; cols: number } | null;
  }
}
window.wshSize = () => (selected.value === null ? null : shownSize(selected.value));
window.wshText = () => (selected.value === null ? "" : shownText(selected.value));
