// Sessions of the list in groups: by project, by host, by state, or all in one.
import { computed, signal } from "@preact/signals";
import { hosts, shown, visible, type Entry, type Visible } from "./store";

export type Grouping = "none" | "project" | "host" | "state";
export const GROUPINGS: readonly [Grouping, string][] = [
  ["none", "no groups"],
  ["project", "by project"],
  ["host", "by host"],
  ["state", "by state"],
];
const stored = localStorage.getItem("wsh.groups");
const chosen = signal<Grouping | undefined>(GROUPINGS.find(([one]) => one === stored)?.[0]);
/** Where nothing was chosen: by host, as soon as there is another machine. */
export const grouping = computed((): Grouping => chosen.value ?? (hosts.value.length > 0 ? "host" : "none"));

export function setGrouping(how: Grouping): void {
  chosen.value = how;
  localStorage.setItem("wsh.groups", how);
}

export interface Group {
  label: string;
  entries: Entry[];
}

const STATES: readonly [Visible, string][] = [
  ["waiting", "asks"],
  ["hidden", "asks, hidden"],
  ["attention", "went quiet"],
  ["running", "running"],
  ["open", "open"],
  ["idle", "idle"],
  ["failed", "failed"],
  ["exited", "exited"],
  ["away", "out of reach"],
];

/** Folders that hold projects and are none themselves. */
const isShelf = (folder: string): boolean => /^\/([^/]*|(home|Users|media|mnt)\/[^/]*|root|tmp)$/.test(folder) || folder === "/var/tmp";

/** The outermost of these folders that `cwd` lies in: sessions in `app` and `app/src` are about one project. */
function projectOf(cwd: string, folders: readonly string[]): string {
  const around = folders.filter((folder) => !isShelf(folder) && (cwd === folder || cwd.startsWith(`${folder}/`)));
  return around.reduce((best, one) => (best === "" || one.length < best.length ? one : best), "") || cwd;
}

/** The machine of a session: its own field, or what stands before the slash of its name. */
function hostOf(entry: Entry): string {
  const told = (entry.info as { host?: string | null }).host;
  return told || (entry.info.name.includes("/") ? (entry.info.name.split("/")[0] ?? "") : "");
}

function keyOf(entry: Entry, folders: readonly string[]): string {
  switch (grouping.value) {
    case "project":
      return projectOf(entry.info.cwd, folders);
    case "host":
      return hostOf(entry) || "this machine";
    case "state":
      return visible(entry);
    default:
      return "";
  }
}

function labelOfHost(name: string): string {
  const host = hosts.value.find((one) => one.name === name);
  if (!host || host.online) return name;
  const seen = host.last_seen == null ? "not seen yet" : `last seen ${new Date(host.last_seen * 1000).toLocaleString()}`;
  return `${name}: out of reach, ${seen}`;
}

/** Two projects of one name are told apart by the folder above. */
function labelOf(key: string, keys: readonly string[]): string {
  if (grouping.value === "state") return STATES.find(([one]) => one === key)?.[1] ?? key;
  if (grouping.value === "host") return labelOfHost(key);
  if (grouping.value !== "project") return key;
  const parts = key.split("/").filter(Boolean);
  const name = parts[parts.length - 1] ?? "/";
  const same = keys.filter((one) => one.endsWith(`/${name}`)).length;
  return same > 1 ? parts.slice(-2).join("/") : name;
}

export const groups = computed((): Group[] => {
  const folders = grouping.value === "project" ? shown.value.map((entry) => entry.info.cwd) : [];
  const found = new Map<string, Entry[]>();
  for (const entry of shown.value) {
    const key = keyOf(entry, folders);
    found.set(key, [...(found.get(key) ?? []), entry]);
  }
  // A machine without sessions, or out of reach, stays in the list.
  if (grouping.value === "host") for (const host of hosts.value) if (!found.has(host.name)) found.set(host.name, []);
  const keys = [...found.keys()];
  const order = (key: string): number => STATES.findIndex(([one]) => one === key);
  if (grouping.value === "state") keys.sort((a, b) => order(a) - order(b));
  else if (grouping.value !== "none") keys.sort((a, b) => a.localeCompare(b));
  return keys.map((key) => ({ label: labelOf(key, keys), entries: found.get(key) ?? [] }));
});

/** Sessions in the order in which the list shows them. */
export const ordered = computed(() => groups.value.flatMap((group) => group.entries));
