// Which texts a person may mean who typed a few of their letters, and how well each fits.

/** How well `word` fits into `text` in order, 0 for not at all; letters together and at the start of words count more. */
function scoreWord(word: string, text: string): number {
  const whole = text.indexOf(word);
  if (whole >= 0) return 100 + word.length * 4 - Math.min(whole, 50) + (whole === 0 || /\W/.test(text[whole - 1] ?? "") ? 40 : 0);
  let at = -1;
  let score = 0;
  for (const letter of word) {
    const next = text.indexOf(letter, at + 1);
    if (next < 0) return 0;
    score += next === at + 1 ? 4 : /\W/.test(text[next - 1] ?? " ") ? 3 : 1;
    at = next;
  }
  return score;
}

/** How well a query fits a text: every word of it must. */
export function score(query: string, text: string): number {
  const lower = text.toLowerCase();
  let sum = 1;
  for (const word of query.toLowerCase().split(/\s+/).filter(Boolean)) {
    const one = scoreWord(word, lower);
    if (one === 0) return 0;
    sum += one;
  }
  return sum;
}
