// Light, dark, or whatever the system says; and the colours of terminals, taken from the same tokens as everything else.
import { effect, signal } from "@preact/signals";
import type { ITheme } from "@xterm/xterm";

export type Theme = "system" | "dark" | "light";
const stored = localStorage.getItem("wsh.theme");
export const theme = signal<Theme>(stored === "dark" || stored === "light" ? stored : "system");
/** Type that nobody has changed. */
export const USUAL_PX = 13;
export const fontSize = signal(Number(localStorage.getItem("wsh.font")) || USUAL_PX);
export const FONTS: readonly [label: string, family: string][] = [
  ["usual", ""],
  ["JetBrains Mono", "'JetBrains Mono'"],
  ["Fira Code", "'Fira Code'"],
  ["DejaVu Sans Mono", "'DejaVu Sans Mono'"],
  ["Liberation Mono", "'Liberation Mono'"],
  ["the browser's monospace", "monospace"],
];
export const fontFamily = signal(localStorage.getItem("wsh.family") ?? "");
/** Counts changes of what the colours are, also by the system. */
export const themeTick = signal(0);

const PALETTE = {
  dark: ["#22262d", "#ff7b72", "#4cc38a", "#f2b544", "#6cb2ff", "#c792ea", "#4fd1d9", "#cdd3dc", "#5c6572", "#ffa198", "#79dcab", "#ffd27a", "#a3cfff", "#ddb6f5", "#8ae6ec", "#ffffff"],
  light: ["#1f2328", "#c02f2a", "#15803d", "#8a5a00", "#0b62c4", "#8a3ab9", "#0b7480", "#6a737d", "#4b5563", "#d8423c", "#1c9a4b", "#a86f00", "#2478d8", "#a04fd0", "#14909d", "#8b949e"],
};
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "brightBlack", "brightRed", "brightGreen", "brightYellow", "brightBlue", "brightMagenta", "brightCyan", "brightWhite"] as const;

const light = window.matchMedia("(prefers-color-scheme: light)");
export const isLight = (): boolean => theme.value === "light" || (theme.value === "system" && light.matches);

export function followTheme(): void {
  effect(() => {
    const root = document.documentElement;
    if (theme.value === "system") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme.value);
    localStorage.setItem("wsh.theme", theme.value);
    themeTick.value = themeTick.peek() + 1;
  });
  effect(() => localStorage.setItem("wsh.font", String(fontSize.value)));
  light.addEventListener("change", () => themeTick.value++);
}

export const palette = (): readonly string[] => PALETTE[isLight() ? "light" : "dark"];

export function terminalTheme(): ITheme {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string): string => style.getPropertyValue(`--terminal-${name}`).trim();
  const colors = Object.fromEntries(NAMES.map((name, n) => [name, palette()[n]]));
  return {
    ...colors,
    background: value("ground"),
    foreground: value("text"),
    cursor: value("cursor"),
    cursorAccent: value("ground"),
    selectionBackground: value("selection"),
  };
}

export function setFont(family: string): void {
  fontFamily.value = family;
  localStorage.setItem("wsh.family", family);
  themeTick.value++;
}

export const terminalFont = (): string =>
  [fontFamily.value, getComputedStyle(document.documentElement).getPropertyValue("--font-mono").trim()].filter(Boolean).join(", ");

export function zoom(by: number): void {
  fontSize.value = Math.max(8, Math.min(28, fontSize.value + by));
}
