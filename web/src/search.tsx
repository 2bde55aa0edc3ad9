// One box over what is on the screens now and over what is indexed.
import { useState } from "preact/hooks";
import { ApiError, get, send, sessionPath } from "./api";
import { choose, entries } from "./store";

interface Hit {
  id: string;
  where: string;
  line: string;
  open?: () => void;
}

async function searchScreens(text: string): Promise<Hit[]> {
  const hits: Hit[] = [];
  const needle = text.toLowerCase();
  await Promise.all(
    [...entries.value.keys()].map(async (name) => {
      const page = await get<{ lines: string[]; first_line: number }>(
        sessionPath(name, "/scrollback?format=plain&limit=10000"),
      ).catch(() => null);
      page?.lines.forEach((line, index) => {
        if (line.toLowerCase().includes(needle)) {
          hits.push({
            id: `${name}:${page.first_line + index}`,
            where: `${name}, line ${page.first_line + index + 1}`,
            line,
            open: () => choose(name),
          });
        }
      });
    }),
  );
  return hits.slice(-200).reverse();
}

interface Found {
  id: string;
  path?: string;
  session?: string;
  startLine?: number;
  snippet?: string | { text: string };
}

async function searchIndex(text: string): Promise<{ hits: Hit[]; note: string }> {
  try {
    const answer = await send<{ hits?: Found[]; results?: Found[] }>("POST", "/workspace/search", { query: text, top: 50 });
    const found = answer.hits ?? answer.results ?? [];
    return {
      hits: found.map((hit) => ({
        id: hit.id,
        where: `${hit.path ?? hit.session ?? ""}${hit.startLine ? `:${hit.startLine}` : ""}`,
        line: typeof hit.snippet === "string" ? hit.snippet : (hit.snippet?.text ?? ""),
      })),
      note: "",
    };
  } catch (problem) {
    const hint = problem instanceof ApiError ? [problem.message, problem.hint].filter(Boolean).join(" ") : String(problem);
    return { hits: [], note: `Code and transcripts are not searched: ${hint}` };
  }
}

export function Search() {
  const [text, setText] = useState("");
  const [hits, setHits] = useState<Hit[] | null>(null);
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const go = async (): Promise<void> => {
    if (!text.trim()) return;
    setBusy(true);
    const [screens, indexed] = await Promise.all([searchScreens(text.trim()), searchIndex(text.trim())]);
    setHits([...screens, ...indexed.hits]);
    setNote(indexed.note);
    setBusy(false);
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
          autofocus
          type="search"
          aria-label="Search terminals, transcripts and code"
          placeholder="Terminals, transcripts, code"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button class="primary">Search</button>
      </form>
      {busy && <p class="soft">Searching…</p>}
      {note && <p class="soft">{note}</p>}
      {hits && hits.length === 0 && !busy && <p class="soft">Nothing found on any screen or in any scrollback.</p>}
      <ul class="hits">
        {hits?.map((hit) => (
          <li key={hit.id}>
            <button class="row" onClick={hit.open} disabled={!hit.open}>
              <span class="soft">
                <bdi>{hit.where}</bdi>
              </span>
              <code>
                <bdi>{hit.line}</bdi>
              </code>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
