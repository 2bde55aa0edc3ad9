// How this page talks to the server. Errors of the server are thrown as ApiError, with its own words.

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint?: string,
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

/** Everything before `/ui`, so that the page works under any prefix. */
export const prefix = location.pathname.replace(/\/ui(\/.*)?$/, "");

// A browser sends its cookie to every port of this host. What proves the owner is this secret beside it: it is in the storage of this
// origin, port included, and goes with every call.
const SECRET = `wsh.secret${prefix}`;

/** After a sign-in link: trade the key behind the `#` for the secret, and take it out of the address. */
export async function signIn(): Promise<void> {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (key === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    localStorage.setItem(SECRET, (await send<{ secret: string }>("POST", "/auth/page", { key })).secret);
  } catch (problem) {
    // Used already, or too late: a browser that was signed in before still is.
    if (!(problem instanceof ApiError) || problem.status === 0) throw problem;
  }
}

async function call(method: string, path: string, body?: unknown): Promise<Response> {
  const headers: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  const secret = localStorage.getItem(SECRET);
  if (secret !== null) headers["wsh-page"] = secret;
  let response: Response;
  try {
    response = await fetch(prefix + path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
    });
  } catch {
    throw new ApiError(0, "unreachable", "The server does not answer.", "It may be restarting; this page tries again.");
  }
  if (!response.ok) {
    const text = await response.text();
    let error: { code?: string; message?: string; hint?: string; details?: Record<string, unknown> } = {};
    try {
      error = (JSON.parse(text) as { error: typeof error }).error;
    } catch {
      // not ours: a proxy between us and the server
    }
    throw new ApiError(response.status, error.code ?? "unknown", error.message ?? `Status ${response.status}`, error.hint, error.details);
  }
  return response;
}

export async function get<T>(path: string): Promise<T> {
  return (await call("GET", path)).json() as Promise<T>;
}

export async function getText(path: string): Promise<string> {
  return (await call("GET", path)).text();
}

export async function send<T = void>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
  const response = await call(method, path, body);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

type Query = Record<string, string | number | boolean | null | undefined>;

/** One call of an operation: see api.ts, which has one function for each. */
export async function ask<T>(method: string, path: string, query?: Query, body?: unknown): Promise<T> {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  const asked = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  const response = await call(method, asked ? `${path}?${asked}` : path, body);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export const sessionPath = (name: string, rest = ""): string => `/sessions/${encodeURIComponent(name)}${rest}`;

/** Opens a WebSocket. It cannot carry the secret, so it gets a ticket that works once. The query is asked for when that has come. */
export async function openSocket(path: string, query = (): Record<string, string> => ({})): Promise<WebSocket> {
  const { ticket } = await send<{ ticket: string }>("POST", "/auth/ws-ticket");
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return new WebSocket(`${scheme}//${location.host}${prefix}${path}?${new URLSearchParams({ ...query(), ticket })}`);
}
