// One box over three places: what the terminals hold now, what they ever printed, and the files of a folder. What is not indexed is said, and can be.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, callWorkspace, getScrollback } from "./api";
import { choose, current, entries, searchTick, view } from "./store";
import { showLine } from "./block";

type Match = "words" | "literal" | "regex";
const MATCHES: [Match, string][] = [
  ["words", "words"],
  ["literal", "exact text"],
  ["regex", "pattern"],
];
const MOST = 100;

interface Line {
  session: string;
  number: number;
  text: string;
}

/** A test for one line; throws what is wrong with a pattern. */
function tester(query: string, match: Match): (line: string) => boolean {
  if (match === "regex") {
    const pattern = new RegExp(query);
    return (line) => pattern.test(line);
  }
  if (match === "literal") return (line) => line.includes(query);
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return (line) => words.every((word) => line.toLowerCase().includes(word));
}

async function searchScreens(query: string, match: Match): Promise<Line[]> {
  const fits = tester(query, match);
  const pages = await Promise.all(
    [...entries.value.keys()].map(async (name) => {
      const page = await getScrollback(name, { format: "plain", limit: 10_000 }).catch(() => null);
      return ((page?.lines ?? []) as string[]).flatMap((text, index) => (fits(text) ? [{ session: name, number: (page?.first_line ?? 0) + index + 1, text }] : []));
    }),
  );
  return pages.flatMap((lines) => lines.slice(-MOST).reverse());
}

interface Hit {
  id: string;
  source: "code" | "prose" | "transcript";
  path: string | null;
  startLine: number;
  kind: string;
  name: string | null;
  snippet: { startLine: number; text: string; matches: { line: number; start: number; end: number }[] };
  transcript?: { session: string; command: string; cwd: string; exitCode: number | null; startedAt: string };
}

const searchIndex = async (body: Record<string, unknown>): Promise<Hit[]> => (await callWorkspace<{ hits: Hit[] }>("search", body)).hits;

/** A place that is being asked, has answered, or cannot be asked. */
type Found<T> = { state: "busy" } | { state: "done"; hits: T[] } | { state: "failed"; problem: string; noIndex: boolean };

async function settle<T>(work: Promise<T[]>): Promise<Found<T>> {
  try {
    return { state: "done", hits: await work };
  } catch (bad) {
    if (!(bad instanceof ApiError)) return { state: "failed", problem: bad instanceof Error ? bad.message : String(bad), noIndex: false };
    const noIndex = bad.details.tool_code === "NO_INDEX";
    return { state: "failed", problem: [bad.message, noIndex ? "" : bad.hint].filter(Boolean).join(" "), noIndex };
  }
}

/** The snippet with its matches marked. */
function Snippet(props: { hit: Hit }) {
  const { text, matches, startLine } = props.hit.snippet;
  return (
    <pre class="snippet" tabIndex={0} aria-label="Text">
      {text.trimEnd().split("\n").map((line, index) => {
        const characters = [...line];
        const parts: preact.ComponentChildren[] = [];
        let at = 0;
        for (const match of matches.filter((one) => one.line === startLine + index)) {
          parts.push(characters.slice(at, match.start).join(""), <mark>{characters.slice(match.start, match.end).join("")}</mark>);
          at = match.end;
        }
        parts.push(characters.slice(at).join(""), "\n");
        return parts;
      })}
    </pre>
  );
}

function HitRow(props: { hit: Hit }) {
  const { hit } = props;
  const told = hit.transcript;
  return (
    <li class="hit">
      <header>
        {told ? (
          <>
            <span class={`verdict${told.exitCode ? " deny" : ""}`}>{told.exitCode === null ? "…" : told.exitCode}</span>
            <code>
              <bdi>{told.command || hit.name}</bdi>
            </code>
            <span class="push" />
            <span class="soft">
              <bdi>{told.session}</bdi>, {new Date(told.startedAt).toLocaleString()}
            </span>
            {entries.value.has(told.session) && <button onClick={() => choose(told.session)}>Open</button>}
          </>
        ) : (
          <>
            <code>
              <bdi>
                {hit.path}:{hit.startLine}
              </bdi>
            </code>
            <span class="push" />
            <span class="soft">
              {hit.kind} <bdi>{hit.name}</bdi>
            </span>
          </>
        )}
      </header>
      <Snippet hit={hit} />
    </li>
  );
}

function Part<T>(props: { title: string; found: Found<T>; none: string; show: (hits: T[]) => preact.ComponentChildren; unindexed?: preact.ComponentChildren }) {
  const { found } = props;
  return (
    <section aria-label={props.title}>
      <h2>
        {props.title}
        {found.state === "done" && <span class="soft"> {found.hits.length}</span>}
      </h2>
      {found.state === "busy" && <p class="soft">Searching…</p>}
      {found.state === "failed" && (found.noIndex && props.unindexed ? props.unindexed : <p class="why">{found.problem}</p>)}
      {found.state === "done" && (found.hits.length === 0 ? <p class="soft">{props.none}</p> : <ul class="hits">{props.show(found.hits)}</ul>)}
    </section>
  );
}

interface Results {
  query: string;
  match: Match;
  folder: string;
  screens: Found<Line>;
  transcripts: Found<Hit>;
  files: Found<Hit>;
}

export function Search() {
  const folders = [...new Set([current.value?.info.cwd ?? "", ...[...entries.value.values()].map((entry) => entry.info.cwd)])].filter(Boolean);
  const [text, setText] = useState("");
  const [match, setMatch] = useState<Match>("words");
  const [folder, setFolder] = useState(folders[0] ?? "");
  const [results, setResults] = useState<Results | null>(null);
  const [building, setBuilding] = useState(false);
  const turn = useRef(0);
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.select(), [searchTick.value]);
  useEffect(() => {
    if (!folder && folders[0]) setFolder(folders[0]);
  }, [folders[0]]);

  const go = async (): Promise<void> => {
    const query = text.trim();
    if (!query) return;
    const mine = ++turn.current;
    const busy = { state: "busy" } as const;
    setResults({ query, match, folder, screens: busy, transcripts: busy, files: busy });
    const keep = (part: Partial<Results>): void => {
      if (mine === turn.current) setResults((old) => (old ? { ...old, ...part } : old));
    };
    const workspace = folder ? { workspace: folder } : {};
    await Promise.all([
      settle(searchScreens(query, match)).then((screens) => keep({ screens })),
      settle(searchIndex({ query, match, mode: "transcripts", top: 30 })).then((transcripts) => keep({ transcripts })),
      settle(searchIndex({ query, match, mode: "all", top: 60, ...workspace }).then((hits) => hits.filter((hit) => hit.source !== "transcript"))).then((files) => keep({ files })),
    ]);
  };
  const build = async (): Promise<void> => {
    setBuilding(true);
    const built = await settle(callWorkspace<unknown>("index_build", folder ? { workspace: folder } : {}).then(() => []));
    setBuilding(false);
    if (built.state === "failed") setResults((old) => (old ? { ...old, files: { ...built, noIndex: false } } : old));
    else await go();
  };

  return (
    <section class="search">
      <h1>Search</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void go();
        }}
      >
        <input
          ref={field}
          type="search"
          aria-label="Search terminals, transcripts and code"
          placeholder="Terminals, transcripts, code"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Escape" || text) return;
            event.preventDefault();
            view.value = "single";
          }}
        />
        <select aria-label="How to match" value={match} onChange={(event) => setMatch(event.currentTarget.value as Match)}>
          {MATCHES.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <button class="primary">Search</button>
      </form>
      <label class="folder soft">
        Files of
        <input class="mono" list="folders" value={folder} placeholder="the server's folder" onInput={(event) => setFolder(event.currentTarget.value)} />
      </label>
      <datalist id="folders">
        {folders.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {!results && <p class="soft">Screens and scrollback of every session, the output of every command of the last 30 days, and the files of a folder.</p>}
      {results && (
        <>
          <Part
            title="Terminals"
            found={results.screens}
            none="Nothing on any screen or in any scrollback."
            show={(lines) =>
              lines.map((line) => (
                <li key={`${line.session}:${line.number}`}>
                  <button
                    class="row"
                    onClick={() => {
                      choose(line.session);
                      void showLine(line.session, line.number - 1);
                    }}
                  >
                    <span class="soft">
                      <bdi>{line.session}</bdi>, line {line.number}
                    </span>
                    <code>
                      <bdi>{line.text}</bdi>
                    </code>
                  </button>
                </li>
              ))
            }
          />
          <Part
            title="Transcripts"
            found={results.transcripts}
            none="No command of the last 30 days printed that."
            show={(hits) => hits.map((hit) => <HitRow key={hit.id} hit={hit} />)}
          />
          <Part
            title="Files"
            found={results.files}
            none="No file of this folder has it."
            show={(hits) => hits.map((hit) => <HitRow key={hit.id} hit={hit} />)}
            unindexed={
              <p>
                <code>{results.folder || "The server's folder"}</code> is not indexed yet.{" "}
                <button class="primary" disabled={building} onClick={() => void build()}>
                  {building ? "Indexing…" : "Index this folder"}
                </button>
              </p>
            }
          />
        </>
      )}
    </section>
  );
}
