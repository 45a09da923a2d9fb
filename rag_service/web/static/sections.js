// A document in the parts that its readers know: slides with their numbers and notes, the sheets of a workbook, the messages
// of a mail with what was written before them folded.

import { read } from "./api.js";
import { el } from "./dom.js";
import { offsetMap } from "./evidence.js";
import { knows, t, upright } from "./i18n.js";
import { renderPassage } from "./passage.js";
import { fullPlace, partWords } from "./places.js";
import { makeGrid, readCells } from "./sheet_grid.js";

const CHUNKS = 40; // loaded at once; two thirds of them behind the one that is cited
const HEADER = "header"; // the part of a mail that says who wrote to whom, when and about what
const MESSAGE = /\.(eml|msg)$/i; // a message within a mailbox or another message
const QUOTED = "quoted"; // the part of a mail that it quotes from somebody who is not named

/** Show the parts of a document: all of them, or those around a citation. Throws when they are of another version. */
export async function showOriginal(into, { citation, name }) {
  const path = `/documents/${encodeURIComponent(citation.documentId)}/chunks`;
  const index = Number(/:(\d+)$/.exec(citation.chunkId)?.[1] ?? 0);
  const first = Math.max(0, index - Math.floor(CHUNKS / 3));
  const load = async (from, to, range) => {
    const { items, total } = await read(path, { offset: from, limit: to - from });
    const groups = readGroups(items, citation);
    const cited = groups.findIndex((group) => (citation.quote ? group.isQuoted : group.chunks.has(index)));
    if (citation.quote && cited < 0) throw new Error("another version");
    const isSlide = (groups[cited]?.location.slide ?? null) !== null && citation.quote && !citation.isWhole;
    const draw = ([begin, end]) => {
      const more = (key, onclick) => el("button", { type: "button", className: "quiet", onclick }, t(key));
      into.replaceChildren(
        ...[
          begin > 0 ? more("panel_earlier", () => draw([begin - 1, end])) : from > 0 ? more("panel_earlier", () => load(Math.max(0, from - CHUNKS), to)) : null,
          ...groups.slice(begin, end).map((group) => makeGroup(group, name)),
          end < groups.length ? more("panel_later", () => draw([begin, end + 1])) : to < total ? more("panel_later", () => load(from, to + CHUNKS)) : null,
        ].filter(Boolean),
      );
    };
    draw(range ?? (isSlide ? [cited, cited + 1] : [0, groups.length]));
    (into.querySelector("mark") ?? (cited > 0 ? into.querySelectorAll(".part")[cited] : null))?.scrollIntoView({ block: citation.quote ? "center" : "start" });
  };
  await load(first, first + CHUNKS);
}

/** The parts in their order: {location, blocks, chunks, isQuoted}; a block is {role, text, quote}. */
function readGroups(chunks, citation) {
  const groups = [];
  const characters = []; // of the document, from the first chunk on; blank between chunks
  const base = chunks[0]?.start ?? 0;
  let open = { key: null };
  let done = 0;
  for (const chunk of chunks) {
    while (characters.length < chunk.start - base) characters.push("\n");
    characters.push(...[...chunk.text].slice(characters.length - (chunk.start - base)));
    const here = new Set();
    for (const span of chunk.spans) {
      const [start, end] = [Math.max(span.start, chunk.start, done), Math.min(span.end, chunk.end)];
      if (end <= start || !span.location) continue;
      const { key, member, role: apart } = keyOf(span.location);
      const said = characters.slice(start - base, end - base).join("");
      const role = apart ?? (said.trim() === span.location.headings.at(-1) ? "title" : "");
      if (open.key !== key) groups.push((open = { key, member, location: span.location, blocks: [], chunks: new Set(), cells: [], isQuoted: false, isFolded: false }));
      const last = open.blocks.at(-1);
      if (last?.role === role && role !== "title") last.end = end;
      else open.blocks.push({ role, start, end });
      open.chunks.add(chunk.index);
      here.add(open);
      done = end;
    }
    for (const { cells, location } of here) if (location.sheet) cells.push(...readCells(chunk, location.sheet, citation));
  }
  for (const group of groups) {
    for (const block of group.blocks) {
      block.text = characters.slice(block.start - base, block.end - base).join("");
      const [from, to] = [Math.max(citation.start, block.start), Math.min(citation.end, block.end)];
      const offset = offsetMap(block.text);
      block.quote = citation.quote && from < to ? { start: offset(from - block.start), end: offset(to - block.start) } : null;
    }
    group.isQuoted = group.blocks.some(({ quote }) => quote);
    const isMessage = (group.location.slide ?? null) === null && !group.location.sheet && (!group.member || MESSAGE.test(group.member));
    const before = groups.slice(0, groups.indexOf(group)).filter(({ member }) => member === group.member);
    // What was written before; where nothing stands above it, it is what the mail says.
    group.isFolded = isMessage && group.blocks[0].role === "title" && before.some(({ blocks }) => blocks.some(({ role }) => role !== HEADER));
  }
  return groups;
}

/** What a place belongs to: {key, member, role}; `member` is a message or a file within, `role` what stands apart in it. */
function keyOf({ slide, sheet, headings, part }) {
  const path = part?.split(" > ") ?? [];
  const role = (slide ?? null) !== null || path.at(-1) === HEADER || path.at(-1) === QUOTED ? (path.pop() ?? null) : null;
  const member = path.join(" > ");
  const isMessage = !member || MESSAGE.test(member);
  return { key: [slide, sheet, member, isMessage ? headings[0] : ""].join(" "), member, role };
}

function makeGroup({ location, member, blocks, cells, isQuoted, isFolded }, name) {
  const { sheet } = location;
  const shown = blocks.map((block) => makeBlock(block, name));
  if (isFolded) {
    const [title, ...rest] = shown;
    return el("details", { className: "part", open: isQuoted }, el("summary", {}, title), ...rest);
  }
  const words = fullPlace({ ...location, headings: [], cell: null, row: null, paragraph: null, part: member || null });
  const grid = sheet && cells.length ? makeGrid([...new Map(cells).values()]) : null;
  return el("section", { className: "part" }, words ? el("h3", { className: "part-head" }, words) : null, ...(grid ? [grid] : shown));
}

function makeBlock({ role, text, quote }, name) {
  const passage = renderPassage(text, quote, name);
  if (role === "title") passage.classList.add("part-title");
  if (role === "" || role === "title") return passage;
  if (role === HEADER) return makeHeader(text, quote);
  const words = partWords(role);
  if (role === QUOTED) return el("details", { className: "part-aside", open: quote !== null }, el("summary", {}, words), passage);
  return el("aside", { className: "part-aside" }, el("h4", {}, words), passage);
}

/** Who wrote to whom, when and about what: a line for each. */
function makeHeader(text, quote) {
  let at = 0;
  const rows = text.split("\n").flatMap((line) => {
    const [start, colon] = [at, line.indexOf(": ")];
    at += line.length + 1;
    if (colon < 0) return [];
    const within = quote && quote.start < at && quote.end > start + colon + 2;
    const value = line.slice(colon + 2);
    const [label, key] = [line.slice(0, colon), `mail_${line.slice(0, colon).toLowerCase()}`];
    return [el("div", {}, el("dt", {}, knows(key) ? t(key) : label), el("dd", {}, within ? el("mark", {}, upright(value)) : upright(value)))];
  });
  return el("dl", { className: "part-header" }, ...rows);
}
