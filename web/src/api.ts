// Made by scripts/generate_reference.py: what the server's operations take and answer.

import { ask, sessionPath } from "./request";

export * from "./request";

export interface AnswerBody {
  digest: string;
  decision: "approve" | "decline";
  scope?: "once" | "session" | "always" | null;
  rule?: string | null;
  headless?: boolean | null;
  command?: string | null;
  confirm?: boolean | null;
  reason?: string | null;
}

export interface ApprovalMode {
  server: boolean;
}

export interface ArchiveBody {
  workspace: string;
  file: string;
}

export interface ChannelInfo {
  name: string;
  there: boolean;
  leads_to: string;
}

export interface CommandAuthor {
  kind: "agent" | "person" | "server";
  id: string;
}

export interface CommandInfo {
  id: number;
  command: string;
  author: CommandAuthor | null;
  cwd: string | null;
  state: string;
  started: number | null;
  duration_ms: number | null;
  exit_code: number | null;
  pipestatus: number[] | null;
  first_line: number;
  last_line: number | null;
  output_bytes: number | null;
}

export interface CommandOutput {
  lines: (string | LineSpan[])[];
  offset: number;
  total: number;
  numbers?: number[] | null;
  matches?: number | null;
  missing_bytes?: number;
}

export interface Created {
  id: string;
}

export interface Cursor {
  row: number;
  col: number;
  visible: boolean;
}

export interface DeliveryInfo {
  channel: string;
  state: "due" | "sending" | "sent" | "over" | "seen" | "held" | "failed" | "unknown";
  tries: number;
  why: string;
}

export interface FleetInfo {
  fleet: string | null;
  name: string | null;
  url: string | null;
  joined: boolean;
  problem: string | null;
  since: number | null;
  nodes: FleetNodeInfo[];
}

export interface FleetJoin {
  url: string;
  credentials?: string | null;
}

export interface FleetNodeInfo {
  name: string;
  online: boolean;
  here: boolean;
  since: number | null;
  last_seen: number | null;
  tags: string[];
  load: number | null;
  sessions: number | null;
  version: string | null;
  role: string | null;
}

export interface Focus {
  focused: string | null;
}

export interface FocusRequest {
  id: string;
}

export interface HookAnswer {
  decision: "allow" | "deny" | "ask";
  reason: string;
  rule: string | null;
  approval_id: string | null;
}

export interface HookAsk {
  client: string;
  command: string;
  cwd: string;
  note?: string | null;
  wait_ms?: number | null;
}

export interface HookParams {
  client: string;
  command: string;
  cwd: string;
  note?: string | null;
}

export interface HostInfo {
  name: string;
  kind: string;
  target: string;
  online: boolean;
  since: number;
  last_seen: number | null;
  version: string | null;
  protocol: number | null;
  problem: string | null;
  same_as?: string | null;
}

export interface HostList {
  hosts: HostInfo[];
}

export interface HostTarget {
  target?: string | null;
  command?: string | null;
}

export interface IdleAnswer {
  screen: Screen;
  scrollback_lines: number;
  generation: number;
  last_activity_ms: number;
  ended_by: string;
  matched?: string | null;
  command_id?: number | null;
  session?: string | null;
}

export interface Inbox {
  items: InboxEntry[];
  wants: number;
}

export interface InboxEntry {
  id: string;
  kind: "request" | "hidden" | "asks" | "failed" | "finished";
  wants: boolean;
  since: number;
  age_ms: number;
  what: string;
  line: string;
  session: string | null;
  command_id: number | null;
  request_id: string | null;
  exit_code: number | null;
  duration_ms: number | null;
  done: boolean;
  snoozed_until: number | null;
  host?: string | null;
}

export interface InboxMarkBody {
  action: "done" | "snooze" | "restore";
  for_s?: number | null;
}

export interface IndexedColor {
  indexed: number;
}

export interface InputMode {
  mode: "passthrough" | "capture";
}

export interface Keys {
  keys: string[];
}

export interface LastInput {
  by: "agent" | "person" | "server";
  name: string;
  ago_ms: number;
}

export interface LineSpan {
  text: string;
  fg?: IndexedColor | RgbColor | null;
  bg?: IndexedColor | RgbColor | null;
  bold?: boolean | null;
  faint?: boolean | null;
  italic?: boolean | null;
  underline?: boolean | string | null;
  strikethrough?: boolean | null;
  blink?: boolean | null;
  inverse?: boolean | null;
  link?: string | null;
}

export interface NoticeInfo {
  seq: number;
  id: string;
  kind: "request" | "hidden" | "asks" | "failed" | "finished" | "exited" | "quiet" | "told";
  since: number;
  title: string;
  text: string;
  session: string | null;
  request_id: string | null;
  exit_code: number | null;
  duration_ms: number | null;
  host: string | null;
  over: boolean;
  deliveries: DeliveryInfo[];
}

export interface NoticeList {
  notices: NoticeInfo[];
  newest: number;
}

export interface NoticeRules {
  rules: RuleInfo[];
  usual: boolean;
  warning: string | null;
  channels: ChannelInfo[];
}

export type Overlay = Record<string, unknown>;

export interface OverlayCreate {
  x: number;
  y: number;
  width: number;
  height: number;
  z?: number | null;
  background?: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } | { bg: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } } | null;
  spans: Span[];
  focusable?: boolean;
}

export interface OverlayPatch {
  x?: number | null;
  y?: number | null;
  width?: number | null;
  height?: number | null;
  z?: number | null;
  background?: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } | { bg: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } } | null;
  spans?: Span[] | null;
  focusable?: boolean | null;
}

export interface OverlayReplace {
  spans: Span[];
  x?: number | null;
  y?: number | null;
  width?: number | null;
  height?: number | null;
  z?: number | null;
  background?: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } | { bg: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } } | null;
  focusable?: boolean | null;
}

export type Panel = Record<string, unknown>;

export interface PanelCreate {
  position: "top" | "bottom";
  height: number;
  z?: number | null;
  background?: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } | { bg: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } } | null;
  spans: Span[];
  focusable?: boolean;
}

export interface PanelPatch {
  position?: "top" | "bottom" | null;
  height?: number | null;
  z?: number | null;
  background?: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } | { bg: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } } | null;
  spans?: Span[] | null;
  focusable?: boolean | null;
}

export interface PanelReplace {
  spans: Span[];
  position?: "top" | "bottom" | null;
  height?: number | null;
  z?: number | null;
  background?: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } | { bg: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } } | null;
  focusable?: boolean | null;
}

export interface Persist {
  persistent: boolean;
}

export interface ProcessShown {
  pid: number;
  argv: string[];
  name: string;
}

export interface PushKey {
  key: string;
}

export interface PushKeys {
  p256dh: string;
  auth: string;
}

export interface RegionWrite {
  fg?: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } | null;
  bg?: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } | null;
  bold?: boolean;
  faint?: boolean;
  italic?: boolean;
  underline?: boolean;
  strikethrough?: boolean;
  inverse?: boolean;
  row: number;
  col: number;
  text: string;
}

export interface RegionWrites {
  writes: RegionWrite[];
}

export interface Resize {
  rows: number;
  cols: number;
}

export interface Rgb {
  r: number;
  g: number;
  b: number;
}

export interface RgbColor {
  rgb: Rgb;
}

export interface RuleBody {
  on: ("request" | "hidden" | "asks" | "failed" | "finished" | "exited" | "quiet" | "told")[];
  to: ("page" | "push" | "desktop" | "webhook" | "line")[];
  session?: string;
  after_s?: number;
  into?: string;
  line?: string;
  front?: number;
}

export interface RuleInfo {
  on: string[];
  to: string[];
  session: string;
  after_s: number;
  into: string;
  line: string;
  front: number;
}

export interface RunAnswer {
  screen: Screen;
  generation: number;
  finished_by: string;
  exit_code?: number | null;
  output?: string | null;
  duration_ms?: number | null;
  pipestatus?: number[] | null;
  command_id?: number | null;
  commands?: number[] | null;
  background?: ProcessShown[] | null;
  truncated?: Record<string, unknown> | null;
  note?: string | null;
  cleared_line?: Record<string, unknown> | null;
  sandbox_denied?: Record<string, unknown> | null;
  unfinished?: boolean | null;
  outside?: Record<string, unknown> | null;
}

export interface RunRequest {
  input: string;
  enter?: boolean;
  timeout_ms?: number;
  max_wait_ms?: number;
  max_output_bytes?: number | null;
  format?: "styled" | "plain";
  clear_line?: boolean;
  answer?: boolean;
  sandbox?: "off" | null;
  reason?: string | null;
}

export interface RunWaits {
  by: string;
  kind: string;
  command: string;
}

export interface SandboxInfo {
  profile: string;
  backend: "bubblewrap" | "landlock";
  weaker?: string[];
}

export interface Screen {
  epoch: number;
  first_line_index: number;
  total_lines: number;
  lines: (string | LineSpan[])[];
  cursor: Cursor;
  cols: number;
  rows: number;
  alternate_active: boolean;
  mode: ScreenModeChoice;
}

export interface ScreenMode {
  mode: "normal" | "alt";
}

export type ScreenModeChoice = "normal" | "alt";

export interface Scrollback {
  epoch: number;
  lines: (string | LineSpan[])[];
  total: number;
  total_lines: number;
  offset: number;
  first_line: number;
  wrapped?: number[];
}

export interface ServerInfo {
  hostname: string;
  version: string;
  server_id: string;
  warnings?: string[];
}

export interface SessionCreate {
  name?: string | null;
  command?: string | null;
  rows?: number | null;
  cols?: number | null;
  cwd?: string | null;
  env?: Record<string, string> | null;
  tags?: string[] | null;
  sandbox?: string | null;
}

export interface SessionInfo {
  name: string;
  server: string;
  pid: number | null;
  command: string;
  rows: number;
  cols: number;
  clients: number;
  tags: string[];
  last_activity_ms: number;
  running: boolean;
  state: "running" | "idle" | "asks" | "hidden" | "open" | "exited";
  exit_code: number | null;
  title: string;
  cwd: string;
  journal: "ok" | "full" | "off";
  notice?: string | null;
  sandbox?: SandboxInfo | null;
  host?: string | null;
  unreachable_since?: number | null;
}

export interface SessionPatch {
  name?: string | null;
  add_tags?: string[] | null;
  remove_tags?: string[] | null;
}

export interface SetApprovalMode {
  server: boolean;
}

export interface SetNoticeRules {
  rules: RuleBody[] | null;
}

export interface Span {
  fg?: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } | null;
  bg?: "black" | "blue" | "bright_black" | "bright_blue" | "bright_cyan" | "bright_green" | "bright_magenta" | "bright_red" | "bright_white" | "bright_yellow" | "cyan" | "gray" | "green" | "grey" | "magenta" | "red" | "white" | "yellow" | string | { indexed: number } | { rgb: { r: number; g: number; b: number } } | null;
  bold?: boolean;
  faint?: boolean;
  italic?: boolean;
  underline?: boolean;
  strikethrough?: boolean;
  inverse?: boolean;
  text: string;
  id?: string | null;
}

export interface SpansUpdate {
  spans: Span[];
}

export interface StateAnswer {
  running: boolean;
  state: "running" | "idle" | "asks" | "hidden" | "open" | "exited";
  at_prompt: "yes" | "no" | "unknown";
  input_wanted: "yes" | "no" | "unknown";
  hidden_prompt: "yes" | "no" | "unknown";
  alt_screen: "yes" | "no" | "unknown";
  integration: string;
  command_id: number | null;
  foreground: ProcessShown | null;
  cwd: string | null;
  jobs: ProcessShown[];
  agent_defaults?: Record<string, unknown> | null;
  taken_by: string | null;
  run_waits?: RunWaits | null;
  last_input: LastInput | null;
}

export interface SubscribePush {
  endpoint: string;
  keys: PushKeys;
  name?: string;
}

export interface SubscriptionInfo {
  id: string;
  name: string;
  service: string;
  made: number;
}

export interface SubscriptionList {
  subscriptions: SubscriptionInfo[];
  available: boolean;
}

export interface TestNotice {
  channel: "page" | "push" | "desktop" | "webhook" | "line";
}

export interface WakeInfo {
  id: string;
  session: string;
  when: string;
  line: string;
  state: "waiting" | "due" | "typing" | "typed" | "dropped";
  why: string;
  set_at: number;
  changed_at: number;
  host?: string | null;
}

export interface WakeList {
  wakes: WakeInfo[];
}

export interface WakeRequest {
  when: string;
  line: string;
}

/** Which server this is. */
export const getServerInfo = (): Promise<ServerInfo> => ask("GET", "/server/info");

/** Whether it stays without clients. */
export const getServerMode = (): Promise<Persist> => ask("GET", "/server/persist");

/** Make it stay, or not. */
export const setServerMode = (body: Persist): Promise<Persist> => ask("PUT", "/server/persist", undefined, body);

/** End the server, and the sessions unless `keep`. */
export const stopServer = <T>(query: { keep?: boolean } = {}): Promise<T> => ask("POST", "/server/stop", query);

/** All sessions, or those with a tag. */
export const listSessions = (query: { tag?: string | null } = {}): Promise<SessionInfo[]> => ask("GET", "/sessions", query);

/** Start a session. */
export const createSession = (body: SessionCreate): Promise<SessionInfo> => ask("POST", "/sessions", undefined, body);

/** One session. */
export const getSession = (name: string): Promise<SessionInfo> => ask("GET", sessionPath(name));

/** Rename and tag it, all or nothing. */
export const updateSession = (name: string, body: SessionPatch): Promise<SessionInfo> => ask("PATCH", sessionPath(name), undefined, body);

/** Kill its whole tree and forget it. It stays where its own program cannot be killed. */
export const killSession = (name: string): Promise<void> => ask("DELETE", sessionPath(name));

/** Send every client of it away. */
export const detachSession = (name: string): Promise<void> => ask("POST", sessionPath(name, "/detach"));

/** Press these keys. */
export const sendKeys = (name: string, body: Keys): Promise<void> => ask("POST", sessionPath(name, "/keys"), undefined, body);

/** Give it another size. */
export const resize = (name: string, body: Resize): Promise<SessionInfo> => ask("POST", sessionPath(name, "/resize"), undefined, body);

/** What is on its screen now. */
export const getScreen = (name: string, query: { format?: "styled" | "plain" } = {}): Promise<Screen> => ask("GET", sessionPath(name, "/screen"), query);

/** The last lines, or those since a given one. */
export const getScrollback = (name: string, query: { format?: "styled" | "plain"; offset?: number; limit?: number; since_line?: number | null } = {}): Promise<Scrollback> => ask("GET", sessionPath(name, "/scrollback"), query);

/** Wait until it is quiet, or for something else. */
export const awaitIdle = (name: string, query: { format?: "styled" | "plain"; timeout_ms?: number | null; max_wait_ms?: number; last_generation?: number | null; fresh?: boolean; text?: string | null; regex?: string | null; command?: boolean; prompt?: boolean; input_wanted?: boolean; exit?: boolean } = {}): Promise<IdleAnswer> => ask("GET", sessionPath(name, "/idle"), query);

/** Wait until any session is quiet, each in its turn. */
export const awaitAnyIdle = (query: { format?: "styled" | "plain"; timeout_ms?: number | null; max_wait_ms?: number; last_generation?: number | null; fresh?: boolean; text?: string | null; regex?: string | null; command?: boolean; prompt?: boolean; input_wanted?: boolean; exit?: boolean; tag?: string | null; last_session?: string | null } = {}): Promise<IdleAnswer> => ask("GET", "/idle", query);

/** A person takes the keyboard: agents' input is refused. */
export const takeOver = (name: string): Promise<void> => ask("POST", sessionPath(name, "/take_over"));

/** Agents may type again. */
export const handBack = (name: string): Promise<void> => ask("POST", sessionPath(name, "/hand_back"));

/** Run a command and wait for its end. */
export const runCommand = (name: string, body: RunRequest): Promise<RunAnswer> => ask("POST", sessionPath(name, "/run"), undefined, body);

/** What ran here. */
export const listCommands = (name: string): Promise<CommandInfo[]> => ask("GET", sessionPath(name, "/commands"));

/** One command. */
export const getCommand = (name: string, id: string): Promise<CommandInfo> => ask("GET", sessionPath(name, `/commands/${encodeURIComponent(id)}`));

/** What it printed, by line or by search. */
export const getCommandOutput = (name: string, id: string, query: { format?: "styled" | "plain"; offset?: number; limit?: number; search?: string | null; regex?: string | null } = {}): Promise<CommandOutput> => ask("GET", sessionPath(name, `/commands/${encodeURIComponent(id)}/output`), query);

/** What it runs and what it waits for. */
export const getState = (name: string): Promise<StateAnswer> => ask("GET", sessionPath(name, "/state"));

/** All overlays of a session. */
export const listOverlays = (name: string): Promise<Overlay[]> => ask("GET", sessionPath(name, "/overlay"));

/** Show a new overlay. */
export const createOverlay = (name: string, body: OverlayCreate): Promise<Created> => ask("POST", sessionPath(name, "/overlay"), undefined, body);

/** Remove all overlays. */
export const clearOverlays = (name: string): Promise<void> => ask("DELETE", sessionPath(name, "/overlay"));

/** One overlay. */
export const getOverlay = (name: string, id: string): Promise<Overlay> => ask("GET", sessionPath(name, `/overlay/${encodeURIComponent(id)}`));

/** New spans, and a new place where given. */
export const updateOverlay = (name: string, id: string, body: OverlayReplace): Promise<void> => ask("PUT", sessionPath(name, `/overlay/${encodeURIComponent(id)}`), undefined, body);

/** Change any of its fields. */
export const patchOverlay = (name: string, id: string, body: OverlayPatch): Promise<void> => ask("PATCH", sessionPath(name, `/overlay/${encodeURIComponent(id)}`), undefined, body);

/** Remove the overlay. */
export const deleteOverlay = (name: string, id: string): Promise<void> => ask("DELETE", sessionPath(name, `/overlay/${encodeURIComponent(id)}`));

/** Replace the spans with these ids. */
export const updateOverlaySpans = (name: string, id: string, body: SpansUpdate): Promise<void> => ask("POST", sessionPath(name, `/overlay/${encodeURIComponent(id)}/spans`), undefined, body);

/** Put text at positions within it. */
export const overlayRegionWrite = (name: string, id: string, body: RegionWrites): Promise<void> => ask("POST", sessionPath(name, `/overlay/${encodeURIComponent(id)}/write`), undefined, body);

/** All panels of a session. */
export const listPanels = (name: string): Promise<Panel[]> => ask("GET", sessionPath(name, "/panel"));

/** Show a new panel. */
export const createPanel = (name: string, body: PanelCreate): Promise<Created> => ask("POST", sessionPath(name, "/panel"), undefined, body);

/** Remove all panels. */
export const clearPanels = (name: string): Promise<void> => ask("DELETE", sessionPath(name, "/panel"));

/** One panel. */
export const getPanel = (name: string, id: string): Promise<Panel> => ask("GET", sessionPath(name, `/panel/${encodeURIComponent(id)}`));

/** New spans, and a new place where given. */
export const updatePanel = (name: string, id: string, body: PanelReplace): Promise<void> => ask("PUT", sessionPath(name, `/panel/${encodeURIComponent(id)}`), undefined, body);

/** Change any of its fields. */
export const patchPanel = (name: string, id: string, body: PanelPatch): Promise<void> => ask("PATCH", sessionPath(name, `/panel/${encodeURIComponent(id)}`), undefined, body);

/** Remove the panel. */
export const deletePanel = (name: string, id: string): Promise<void> => ask("DELETE", sessionPath(name, `/panel/${encodeURIComponent(id)}`));

/** Replace the spans with these ids. */
export const updatePanelSpans = (name: string, id: string, body: SpansUpdate): Promise<void> => ask("POST", sessionPath(name, `/panel/${encodeURIComponent(id)}/spans`), undefined, body);

/** Put text at positions within it. */
export const panelRegionWrite = (name: string, id: string, body: RegionWrites): Promise<void> => ask("POST", sessionPath(name, `/panel/${encodeURIComponent(id)}/write`), undefined, body);

/** Whether keys are captured. */
export const getInputMode = (name: string): Promise<InputMode> => ask("GET", sessionPath(name, "/input/mode"));

/** Send people's keys to events instead of the program. */
export const captureInput = (name: string): Promise<void> => ask("POST", sessionPath(name, "/input/capture"));

/** Let keys pass again. */
export const releaseInput = (name: string): Promise<void> => ask("POST", sessionPath(name, "/input/release"));

/** Which element has the focus. */
export const getFocus = (name: string): Promise<Focus> => ask("GET", sessionPath(name, "/input/focus"));

/** Give an element the focus. */
export const focus = (name: string, body: FocusRequest): Promise<void> => ask("POST", sessionPath(name, "/input/focus"), undefined, body);

/** Take the focus away. */
export const unfocus = (name: string): Promise<void> => ask("POST", sessionPath(name, "/input/unfocus"));

/** The normal or the alternate screen. */
export const getScreenMode = (name: string): Promise<ScreenMode> => ask("GET", sessionPath(name, "/screen_mode"));

/** Enter the alternate screen mode. */
export const enterAltScreen = (name: string): Promise<void> => ask("POST", sessionPath(name, "/screen_mode/enter_alt"));

/** Leave it, and remove its elements. */
export const exitAltScreen = (name: string): Promise<void> => ask("POST", sessionPath(name, "/screen_mode/exit_alt"));

/** One request of the terminal contract. */
export const callTerminal = <T>(body: unknown): Promise<T> => ask("POST", "/terminal", undefined, body);

/** One of the workspace tools: search, show_file, index_build, index_status, check_status, workspace_status. */
export const callWorkspace = <T>(tool: string, body: unknown): Promise<T> => ask("POST", `/workspace/${encodeURIComponent(tool)}`, undefined, body);

/** Write the index of a workspace to an archive on the server's machine. */
export const exportIndex = <T>(body: ArchiveBody): Promise<T> => ask("POST", "/workspace/index/export", undefined, body);

/** Take the index of a workspace from an archive, after verifying it. */
export const importIndex = <T>(body: ArchiveBody): Promise<T> => ask("POST", "/workspace/index/import", undefined, body);

/** Requests that wait for a person, with their cards, and what became of the last ones. */
export const listApprovals = <T>(): Promise<T> => ask("GET", "/approvals");

/** Whether approvals are answered at this server. */
export const getApprovalMode = (): Promise<ApprovalMode> => ask("GET", "/approvals/mode");

/** Turn answering at this server on or off, until it ends; the setting holds for the next one. */
export const setApprovalMode = (body: SetApprovalMode): Promise<ApprovalMode> => ask("PUT", "/approvals/mode", undefined, body);

/** One of them. */
export const getApproval = <T>(id: string): Promise<T> => ask("GET", `/approvals/${encodeURIComponent(id)}`);

/** Approve or decline one of them, where the setting approvals.server permits it. */
export const answerApproval = <T>(id: string, body: AnswerBody): Promise<T> => ask("POST", `/approvals/${encodeURIComponent(id)}`, undefined, body);

/** What the rules say of a command that a host would run; asks nobody. */
export const judgeHook = (body: HookParams): Promise<HookAnswer> => ask("POST", "/hook", undefined, body);

/** The same, and where no rule decides, a card asks the person until the deadline. */
export const askHook = (body: HookAsk): Promise<HookAnswer> => ask("POST", "/hook/ask", undefined, body);

/** What waits for a person or has ended: requests, programs that ask, failed and finished commands. */
export const listInbox = (query: { all?: boolean } = {}): Promise<Inbox> => ask("GET", "/inbox", query);

/** Mark an entry as done, put it off, or bring it back. */
export const markInbox = (id: string, body: InboxMarkBody): Promise<Inbox> => ask("POST", `/inbox/${encodeURIComponent(id)}`, undefined, body);

/** Type a line into it, once, when a command of another session has ended; never onto a line in use. */
export const setWake = (name: string, body: WakeRequest): Promise<WakeInfo> => ask("POST", sessionPath(name, "/wake"), undefined, body);

/** Lines that wait to be typed, and what became of earlier ones. */
export const listWakes = (): Promise<WakeList> => ask("GET", "/wakes");

/** Take back a line that has not been typed. */
export const cancelWake = (id: string): Promise<WakeInfo> => ask("DELETE", `/wakes/${encodeURIComponent(id)}`);

/** What was told, oldest first, with what became of it at every channel. */
export const listNotices = (query: { after?: number; limit?: number } = {}): Promise<NoticeList> => ask("GET", "/notices", query);

/** Send a notice that says it is a test by one channel, and say what came of it. */
export const testNotice = (body: TestNotice): Promise<NoticeInfo> => ask("POST", "/notices/test", undefined, body);

/** Which happenings are told, by which channels, and where the channels lead. */
export const getNoticeRules = (): Promise<NoticeRules> => ask("GET", "/notices/rules");

/** Replace the rules of notices. */
export const setNoticeRules = (body: SetNoticeRules): Promise<NoticeRules> => ask("PUT", "/notices/rules", undefined, body);

/** The public key of this server, which a browser needs to subscribe to push. Made on first use. */
export const getPushKey = (): Promise<PushKey> => ask("GET", "/push/key");

/** The browsers that take push. */
export const listSubscriptions = (): Promise<SubscriptionList> => ask("GET", "/push/subscriptions");

/** Send push to this browser from now on. Its endpoint must be https. */
export const subscribePush = (body: SubscribePush): Promise<SubscriptionInfo> => ask("POST", "/push/subscriptions", undefined, body);

/** Send no more push to a browser. */
export const unsubscribePush = (id: string): Promise<void> => ask("DELETE", `/push/subscriptions/${encodeURIComponent(id)}`);

/** Other machines, whether they can be reached, and since when. */
export const listHosts = (): Promise<HostList> => ask("GET", "/hosts");

/** Make another machine's sessions addressable as `name/session`; it is connected to at once. */
export const addHost = (host: string, body: HostTarget): Promise<HostList> => ask("PUT", `/hosts/${encodeURIComponent(host)}`, undefined, body);

/** Forget another machine. Its sessions go on there. */
export const removeHost = (host: string): Promise<HostList> => ask("DELETE", `/hosts/${encodeURIComponent(host)}`);

/** This server's fleet: whether it is joined, and all nodes with tags, load and number of sessions. */
export const getFleet = (): Promise<FleetInfo> => ask("GET", "/fleet");

/** Join a fleet now, until this server ends; the settings hold for the next one. */
export const joinFleet = (body: FleetJoin): Promise<FleetInfo> => ask("PUT", "/fleet", undefined, body);

/** Leave the fleet. The other nodes forget this one; its sessions go on here. */
export const leaveFleet = (): Promise<FleetInfo> => ask("DELETE", "/fleet");

/** The policy in force: rules, limits, and a warning if its file cannot be used. */
export const getPolicy = <T>(): Promise<T> => ask("GET", "/policy");

/** The newest entries of the audit, oldest first. */
export const getAudit = <T>(query: { limit?: number } = {}): Promise<T> => ask("GET", "/audit", query);

/** Who is connected, to which session, and how: WebSockets, viewers, MCP clients. */
export const listClients = <T>(): Promise<T> => ask("GET", "/clients");

