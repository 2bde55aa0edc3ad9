// One whole scenario with a TypeScript client: node scenario.mjs sdk|client stdio|http|http-modern TARGET…
// TARGET is a command with arguments, or a URL and a token. Prints one JSON object with what happened.
const [library, transport, ...target] = process.argv.slice(2);

async function load() {
  if (library === "sdk") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return { Client, StdioClientTransport, StreamableHTTPClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  return { Client, StdioClientTransport, StreamableHTTPClientTransport };
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport } = await load();
const modern = transport.endsWith("modern");
const options = modern ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {};
const client = new Client({ name: `ts-${library}`, version: "1" }, options);
const wire = transport.startsWith("stdio")
  ? new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env, stderr: "inherit" })
  : new StreamableHTTPClientTransport(new URL(target[0]), {
      requestInit: { headers: { Authorization: `Bearer ${target[1]}` } },
    });
await client.connect(wire);

async function call(name, args) {
  const result = await client.callTool({ name, arguments: args });
  if (result.isError) throw new Error(`${name}: ${result.content[0].text}`);
  return result.structuredContent;
}

const seen = {};
const tools = await client.listTools();
seen.tools = tools.tools.map((tool) => tool.name);
const { session } = await call("wsh_create_session", { command: "bash --norc", rows: 30, cols: 100 });
try {
  const ran = await call("wsh_run_command", { session, input: "echo out-$((6*7))", format: "plain" });
  seen.ran = { output: ran.output, exit_code: ran.exit_code, finished_by: ran.finished_by };
  const sent = await call("wsh_send_input", { session, input: "read -p na'me? ' n; echo hi $n\r" });
  await call("wsh_await_quiesce", { session, generation: sent.generation, text: "name?", max_wait_ms: 10000 });
  const answered = await call("wsh_send_input", { session, input: "ada\r" });
  await call("wsh_await_quiesce", { session, generation: answered.generation, text: "hi ada", max_wait_ms: 10000 });
  const screen = await call("wsh_get_screen", { session, format: "plain" });
  seen.screen = screen.lines.filter((line) => line.startsWith("hi "));
  const back = await call("wsh_get_scrollback", { session, limit: 5 });
  seen.total = back.total;
  const overlay = await call("wsh_overlay", { session, x: 3, y: 1, spans: [{ text: "look", fg: "red", bold: true }] });
  const panel = await call("wsh_panel", { session, position: "top", height: 2, spans: [{ text: "status" }] });
  seen.elements = [overlay.width, (await call("wsh_panel", { session, list: true })).panels.length, panel.visible];
  await call("wsh_remove_overlay", { session, id: overlay.id });
  await call("wsh_remove_panel", { session });
  seen.mode = (await call("wsh_input_mode", { session })).mode;
  seen.listed = (await call("wsh_list_sessions", {})).sessions.map((entry) => entry.name).includes(session);
  const failed = await client.callTool({
    name: "wsh_run_command",
    arguments: { session, input: "sleep 30", max_wait_ms: 200, format: "plain" },
  });
  seen.timeout = [failed.isError, JSON.parse(failed.content[0].text).code];
  try {
    await client.callTool({ name: "wsh_get_screen", arguments: { session: "nobody" } });
  } catch (problem) {
    seen.unknown = problem.code;
  }
  const read = await client.readResource({ uri: `wsh://sessions/${session}/screen` });
  seen.resource = JSON.parse(read.contents[0].text).rows;
  const prompts = await client.listPrompts();
  seen.prompts = prompts.prompts.length;
  const prompt = await client.getPrompt({ name: "wsh:core" });
  seen.prompt = prompt.messages[0].content.text.slice(0, 6);
} finally {
  await call("wsh_manage_session", { session, action: "kill" });
}
await client.close();
console.log(JSON.stringify(seen));
