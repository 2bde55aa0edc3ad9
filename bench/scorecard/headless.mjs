// Runs @xterm/headless for the scorecard: one JSON request a line on stdin, one JSON answer a line on stdout.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
const { Terminal } = createRequire(process.argv[2] + '/')('@xterm/headless');

let terminal;
let replies = [];
const styleNames = [
  ['isBold', 'bold'], ['isDim', 'faint'], ['isItalic', 'italic'], ['isUnderline', 'underline'],
  ['isStrikethrough', 'strikethrough'], ['isBlink', 'blink'], ['isInverse', 'inverse'],
];

function colour(palette, rgb, value) {
  if (palette) return value;
  if (rgb) return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
  return null;
}

function readRow(line) {
  const cells = [];
  for (let x = 0; x < terminal.cols; x++) {
    const cell = line?.getCell(x);
    if (!cell) { cells.push([' ', null, null, []]); continue; }
    if (cell.getWidth() === 0) continue;
    cells.push([
      cell.getChars() || ' ',
      colour(cell.isFgPalette(), cell.isFgRGB(), cell.getFgColor()),
      colour(cell.isBgPalette(), cell.isBgRGB(), cell.getBgColor()),
      styleNames.filter(([method]) => cell[method]()).map(([, name]) => name),
    ]);
  }
  return cells;
}

async function answer(request) {
  if (request.op === 'open') {
    terminal?.dispose();
    replies = [];
    terminal = new Terminal({ rows: request.rows, cols: request.cols, scrollback: request.history, allowProposedApi: true, logLevel: 'off' });
    terminal.onData((data) => replies.push(Buffer.from(data, 'utf8')));
    terminal.onBinary((data) => replies.push(Buffer.from(data, 'latin1')));
    return {};
  }
  if (request.op === 'feed') {
    await new Promise((done) => terminal.write(Buffer.from(request.data, 'base64'), done));
    const said = Buffer.concat(replies).toString('base64');
    replies = [];
    return { replies: said };
  }
  if (request.op === 'resize') {
    terminal.resize(request.cols, request.rows);
    return {};
  }
  const buffer = terminal.buffer.active;
  const rows = [];
  for (let y = request.all ? 0 : buffer.baseY; y < buffer.baseY + terminal.rows; y++) rows.push(readRow(buffer.getLine(y)));
  return { rows, cursor: [buffer.cursorY, buffer.cursorX] };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + '\n');
}
