// The clipboard: what the person selects, and what programs ask to put there (OSC 52), which the person allows.
import { signal } from "@preact/signals";
import { tell } from "./store";

export type Permission = "ask" | "allow" | "never";
const stored = localStorage.getItem("wsh.clipboard");
export const permission = signal<Permission>(stored === "allow" || stored === "never" ? stored : "ask");
export const copyOnSelect = signal(localStorage.getItem("wsh.copy-on-select") !== "no");
/** What a program wants to put on the clipboard, while the person is asked. */
export const wish = signal<{ session: string; text: string } | null>(null);

export function setPermission(to: Permission): void {
  permission.value = to;
  localStorage.setItem("wsh.clipboard", to);
}

export function setCopyOnSelect(on: boolean): void {
  copyOnSelect.value = on;
  localStorage.setItem("wsh.copy-on-select", on ? "yes" : "no");
}

/** Put text on the clipboard; where the browser has no clipboard for this origin (http on another host), by its copy command. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByCommand(text);
  }
}

function copyByCommand(text: string): boolean {
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  area.style.opacity = "0";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return done;
}

/** A program's OSC 52: `c;` and base64. A question for what is on the clipboard is never answered. */
export function hearWish(session: string, data: string): boolean {
  const encoded = data.slice(data.indexOf(";") + 1);
  if (encoded === "?" || permission.value === "never") return true;
  let text: string;
  try {
    text = new TextDecoder().decode(Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0)));
  } catch {
    return true;
  }
  if (permission.value === "allow") void grant(session, text);
  else wish.value = { session, text };
  return true;
}

export async function grant(session: string, text: string): Promise<void> {
  wish.value = null;
  if (await copyText(text)) tell(`${session} put ${text.length} characters on the clipboard`);
  else tell("The browser did not let the clipboard be written.", "Click into the page first, or allow it in the browser's settings.", true);
}
