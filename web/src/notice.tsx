// Notices at this page, and push to this browser: the service worker, the subscription, and opening what a notice is about.
import "./notice.css";
import { signal } from "@preact/signals";
import { getPushKey, listNotices, listSubscriptions, subscribePush, unsubscribePush, type NoticeInfo } from "./api";
import { approvals, lookAtApprovals } from "./approvals";
import { attempt, choose, connection, entries, looked, tell, view } from "./store";

const EVERY_MS = 2000;
const SEEN = "wsh.notices";
const TOLD_HERE = ["request", "hidden", "asks"];

type Push = "unknown" | "insecure" | "unsupported" | "off" | "on" | "denied" | "missing";
export const push = signal<Push>("unknown");
/** The card that a notice opened. */
export const opened = signal<string | null>(null);
let worker: ServiceWorkerRegistration | null = null;

const pick = (text: string): Uint8Array<ArrayBuffer> => {
  const plain = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(plain, (sign) => sign.charCodeAt(0));
};

/** Show what a notice is about: the card of a request, or the session. */
export async function openNotice(id: string): Promise<void> {
  const at = id.lastIndexOf("/") + 1; // of another machine: its name stands before that
  const dot = id.indexOf(".", at);
  if (id.slice(at, dot) === "request") {
    const rest = id.slice(0, at) + id.slice(dot + 1);
    view.value = "queue";
    opened.value = rest;
    await lookAtApprovals();
    requestAnimationFrame(() => show(rest));
    return;
  }
  const found = await attempt(() => listNotices({ limit: 1000 }));
  const notice = found?.notices.find((one) => one.id === id);
  if (notice?.session && entries.peek().has(notice.session)) choose(notice.session);
  else view.value = "queue";
}

function show(id: string): void {
  const card = document.querySelector<HTMLElement>(`[data-request="${CSS.escape(id)}"]`);
  if (card) {
    card.scrollIntoView({ block: "start" });
    card.tabIndex = -1;
    card.focus({ preventScroll: true });
  } else if (!approvals.peek().some((one) => one.id === id)) {
    tell("That request does not wait any more.");
  }
}

async function look(): Promise<void> {
  if (connection.peek() !== "connected" || document.visibilityState !== "visible") return;
  const seen = Number(localStorage.getItem(SEEN) ?? -1);
  try {
    const found = await listNotices({ after: Math.max(0, seen), limit: 20 });
    // Another tab may have shown them meanwhile. A browser that comes for the first time is told of nothing old.
    const now = Number(localStorage.getItem(SEEN) ?? -1);
    if (found.newest === now) return;
    localStorage.setItem(SEEN, String(found.newest));
    if (seen < 0 || found.newest < now) return;
    for (const one of found.notices.filter((each) => each.seq > now)) toast(one);
  } catch {
    // That the server is gone, or this browser no longer signed in, is said elsewhere.
  }
}

function toast(one: NoticeInfo): void {
  const here = one.deliveries.some((each) => each.channel === "page");
  // What waits stands in the list, as long as it waits; a request also in a row of its own, wherever one looks.
  if (!here || one.over || one.kind === "request" || (view.peek() === "queue" && TOLD_HERE.includes(one.kind))) return;
  // Nor is anybody told what they have before their eyes.
  if (one.session && looked(one.session) && ["asks", "hidden"].includes(one.kind)) return;
  tell(one.title, one.text, one.kind === "failed", () => void openNotice(one.id));
}

export async function followNotices(): Promise<void> {
  setInterval(() => void look(), EVERY_MS);
  document.addEventListener("visibilitychange", () => void look());
  const wanted = new URLSearchParams(location.hash.slice(1)).get("notice");
  if (wanted !== null) {
    history.replaceState(null, "", location.pathname + location.search);
    const stop = connection.subscribe((now) => {
      if (now !== "connected") return;
      queueMicrotask(() => stop());
      void openNotice(wanted);
    });
  }
  if (!window.isSecureContext) push.value = "insecure";
  else if (!("serviceWorker" in navigator)) push.value = "unsupported";
  else {
    navigator.serviceWorker.addEventListener("message", (event: MessageEvent<{ notice?: string }>) => {
      if (event.data.notice !== undefined) void openNotice(event.data.notice);
    });
    try {
      worker = await navigator.serviceWorker.register("./sw.js");
    } catch {
      push.value = "unsupported"; // a private window, or a browser that was told to take none
      return;
    }
    await lookAtPush();
  }
}

async function lookAtPush(): Promise<void> {
  if (!worker || !("PushManager" in window)) push.value = "unsupported";
  else if (Notification.permission === "denied") push.value = "denied";
  else push.value = (await isSubscribed(await worker.pushManager.getSubscription())) ? "on" : "off";
}

/** A browser keeps its subscription also where the server has dropped it, or has lost its keys. */
async function isSubscribed(made: PushSubscription | null): Promise<boolean> {
  if (made === null) return false;
  const [id, there] = [await nameOf(made), await listSubscriptions().catch(() => null)];
  return there === null || there.subscriptions.some((one) => one.id === id);
}

/** As the server names a subscription. */
async function nameOf(made: PushSubscription): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(made.endpoint));
  return [...new Uint8Array(digest)].map((one) => one.toString(16).padStart(2, "0")).join("").slice(0, 16);
}

export async function subscribe(): Promise<void> {
  if (!worker) return;
  const there = await attempt(listSubscriptions);
  if (there && !there.available) {
    push.value = "missing";
    return;
  }
  const key = await attempt(getPushKey);
  if (!key) return;
  try {
    await (await worker.pushManager.getSubscription())?.unsubscribe(); // it may be made for other keys than the server has now
    const made = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: pick(key.key) });
    const { endpoint, keys } = made.toJSON();
    const name = navigator.userAgent.match(/Android|iPhone|iPad|Firefox|Edg|Chrome|Safari/)?.[0] ?? "browser";
    const body = { endpoint: endpoint ?? "", keys: { p256dh: keys?.p256dh ?? "", auth: keys?.auth ?? "" }, name };
    if (!(await attempt(() => subscribePush(body)))) await made.unsubscribe();
  } catch (problem) {
    if (Notification.permission !== "denied") tell("This browser could not subscribe.", String(problem), true);
  }
  await lookAtPush();
}

export async function unsubscribe(): Promise<void> {
  const made = await worker?.pushManager.getSubscription();
  if (made) {
    await made.unsubscribe();
    await unsubscribePush(await nameOf(made)).catch(() => undefined);
  }
  await lookAtPush();
}

const SAYS: Partial<Record<Push, string>> = {
  insecure: "Push needs https or localhost: this page came by plain http. `wsh link --qr` says what to do.",
  unsupported: "This browser takes no push here. On an iPhone, add the page to the home screen first.",
  denied: "Notices are blocked for this page in the browser's settings.",
  missing: "This server cannot send push: install the extra `push`.",
};

/** Whether this browser is told when the page is closed. */
export function PushSwitch() {
  const now = push.value;
  if (now === "unknown") return null;
  const says = SAYS[now];
  return (
    <p class="push-switch soft">
      {says ?? (now === "on" ? "This browser is told, also while the page is closed." : "Be told also while the page is closed:")}{" "}
      {now === "off" && <button onClick={() => void subscribe()}>Tell this browser</button>}
      {now === "on" && <button onClick={() => void unsubscribe()}>Stop</button>}
    </p>
  );
}
