// Text that is pasted: no part of it presses a key or ends the paste. The server does the same with what is pasted through it.

const BRACKETS = /(?:\x1b\[|\x9b)20[01]~/g;
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;

/** The text without paste brackets, and with a blank for every control character but tab and the ends of lines. */
export function harmless(text: string): string {
  let clean = text;
  // Again until nothing changes: removing one bracket may join another.
  for (let before = ""; before !== clean; ) [before, clean] = [clean, clean.replace(BRACKETS, "")];
  return clean.replace(CONTROLS, " ");
}
