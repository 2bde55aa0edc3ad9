// Loaded before the conformance suite, which knows no tokens: adds ours to every request to the server under test.
//
// On the socket, below every HTTP client: the suite also builds requests that undici would change or refuse (headers that
// are missing, malformed or sent twice), and those must reach the server as they were meant.
import net from "node:net";

const { JUDGED_ORIGIN, JUDGED_TOKEN } = process.env;
const port = Number(new URL(JUDGED_ORIGIN).port);
const requestLine = /^(?:GET|POST|PUT|PATCH|DELETE|OPTIONS|HEAD) [^\r\n]+ HTTP\/1\.1\r\n/;
const { connect, write } = net.Socket.prototype;
const judged = new WeakSet();

net.Socket.prototype.connect = function (...args) {
  const first = Array.isArray(args[0]) ? args[0][0] : args[0];
  if (Number(typeof first === "object" ? first?.port : first) === port) judged.add(this);
  return connect.apply(this, args);
};

function withToken(text) {
  return text.replace(requestLine, (line) => `${line}authorization: Bearer ${JUDGED_TOKEN}\r\n`);
}

net.Socket.prototype.write = function (data, encoding, done) {
  if (judged.has(this)) {
    if (typeof data === "string") data = withToken(data);
    else if (data instanceof Uint8Array && requestLine.test(Buffer.from(data.subarray(0, 4096)).toString("latin1"))) {
      data = Buffer.from(withToken(Buffer.from(data).toString("latin1")), "latin1");
    }
  }
  return write.call(this, data, encoding, done);
};
