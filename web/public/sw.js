// The part of the page that runs without a window: it shows pushes, each id once, and keeps the page's own files for when the server
// cannot be reached. It never keeps or answers anything but those files: what the server says always comes from the server.
const FILES = "wsh-files";
const SHOWN = "wsh-shown";
const MOST_SHOWN = 200;
const home = new URL("./", self.location.href);

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(FILES).then((files) => files.add(home)).catch(() => undefined).then(() => self.skipWaiting()));
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== home.origin || !url.pathname.startsWith(home.pathname)) return;
  const built = url.pathname.startsWith(`${home.pathname}assets/`);
  if (built) event.respondWith(fromFiles(event.request));
  else if (event.request.mode === "navigate") event.respondWith(fromServer(event));
});

/** Built files carry a hash of their content in their names, so what is kept is right for ever. */
async function fromFiles(request) {
  const files = await caches.open(FILES);
  const kept = await files.match(request);
  if (kept) return kept;
  const answer = await fetch(request);
  if (answer.ok) await files.put(request, answer.clone());
  return answer;
}

/** The page from the server; without one, as it was last, which says that the server does not answer and tries again. */
async function fromServer(event) {
  try {
    const answer = await fetch(event.request);
    if (answer.ok) {
      const copy = answer.clone();
      event.waitUntil(keepPage(copy));
    }
    return answer;
  } catch (problem) {
    const kept = await (await caches.open(FILES)).match(home);
    if (kept) return kept;
    throw problem;
  }
}

/** A new page has files of other names; those of the page before it go. */
async function keepPage(answer) {
  const files = await caches.open(FILES);
  const text = await answer.clone().text();
  await files.put(home, answer);
  for (const request of await files.keys()) {
    const name = new URL(request.url).pathname.split("/").pop();
    if (name && name.startsWith("index-") && !text.includes(name)) await files.delete(request);
  }
}

const underWay = new Map();

/** Shows a notice once, also when it comes again before it is shown: a second one of its tag would take the place of the first. */
function showOnce(id, options) {
  let way = underWay.get(id);
  if (!way) {
    way = show(id, options).finally(() => underWay.delete(id));
    underWay.set(id, way);
  }
  return way;
}

/** Shows a notice that was not shown before. It is noted afterwards: one that could not be shown may come again. */
async function show(id, options) {
  const shown = await caches.open(SHOWN);
  const mark = new URL(`shown/${encodeURIComponent(id)}`, home).href;
  if (await shown.match(mark)) return;
  await self.registration.showNotification("wsh", { ...options, tag: id, data: { id } });
  if ((await self.registration.getNotifications({ tag: id })).length === 0) return; // the browser said yes and shows none
  await shown.put(mark, new Response(""));
  const all = await shown.keys();
  await Promise.all(all.slice(0, Math.max(0, all.length - MOST_SHOWN)).map((old) => shown.delete(old)));
}

self.addEventListener("push", (event) => {
  let told = {};
  try {
    told = event.data.json();
  } catch {
    // not ours, or empty: say only that something is there
  }
  const id = String(told.id ?? "");
  event.waitUntil(
    showOnce(id, {
      body: String(told.text ?? "Something waits for you."),
      icon: new URL("icon-192.png", home).href,
      badge: new URL("icon-192.png", home).href,
      timestamp: Number(told.since ?? 0) * 1000 || Date.now(),
      requireInteraction: ["request", "hidden", "asks"].includes(told.kind),
    }),
  );
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.id ?? ""));
});

/** In a window that is there already, else in a new one. */
async function open(id) {
  const windows = await self.clients.matchAll({ type: "window" });
  const mine = windows.find((one) => new URL(one.url).pathname.startsWith(home.pathname));
  if (mine) {
    mine.postMessage({ notice: id });
    return mine.focus().catch(() => undefined);
  }
  return self.clients.openWindow(new URL(`#notice=${encodeURIComponent(id)}`, home).href);
}
