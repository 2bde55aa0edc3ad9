// Loaded before the conformance suite, which knows no tokens: adds ours to every request to the server under test.
import { Agent, setGlobalDispatcher } from "undici";

const { JUDGED_ORIGIN, JUDGED_TOKEN } = process.env;
const authorization = `Bearer ${JUDGED_TOKEN}`;

function withToken(headers) {
  if (Array.isArray(headers)) return [...headers, "authorization", authorization];
  if (headers && typeof headers[Symbol.iterator] === "function") return [...headers].flat().concat("authorization", authorization);
  return { ...headers, authorization };
}

setGlobalDispatcher(
  new Agent().compose((dispatch) => (options, handler) => {
    if (String(options.origin) !== JUDGED_ORIGIN) return dispatch(options, handler);
    return dispatch({ ...options, headers: withToken(options.headers) }, handler);
  }),
);
