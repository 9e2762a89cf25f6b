// The output of a job, read in parts: its end first, older and newer parts when one scrolls there. It can be followed
// and searched whatever its size; colours of terminals are shown, every other control character is spelled out.
import { clean, el, get, href, say, size } from "./parts.js";

const PART = 64 * 1024;
const MOST_SHOWN = 1024 * 1024;  // bytes that stay in the page
const FOLLOW_MS = 1000;
const ESCAPE = /\u001b(?:\[([0-9;:]*)([A-Za-z])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[()][A-Z0-9]|[=>78cDEHM])/g;
const SPELLED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

// A terminal's text as elements: colours become classes, a line that was written over shows what came last.
export function coloured(text) {
  const styles = new Set();
  const parts = [];
  const add = (piece) => {
    if (!piece) return;
    const lines = piece.replace(/\r+\n/g, "\n").split("\n").map((line) => (line.includes("\r") ? line.split("\r").filter(Boolean).at(-1) || "" : line)).join("\n");
    const spelled = lines.replace(SPELLED, (sign) => clean(sign));
    parts.push(styles.size ? el("span", { class: [...styles].join(" ") }, spelled) : document.createTextNode(spelled));
  };
  let at = 0;
  for (const match of text.matchAll(ESCAPE)) {
    add(text.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === "m") for (const code of (match[1] || "0").split(/[;:]/).map(Number)) style(styles, code);
  }
  add(text.slice(at));
  return parts;
}
function style(styles, code) {
  const colour = (code >= 30 && code <= 37) || (code >= 90 && code <= 97);
  if (code === 0) styles.clear();
  else if (code === 1) styles.add("a-bold");
  else if (code === 2) styles.add("a-dim");
  else if (code === 3) styles.add("a-italic");
  else if (code === 4) styles.add("a-under");
  else if (code === 22) { styles.delete("a-bold"); styles.delete("a-dim"); }
  if (code === 39 || colour) for (const one of [...styles]) if (/^a-[39]\d$/.test(one)) styles.delete(one);
  if (colour) styles.add(`a-${code}`);
}

export function logViewer(number, job, words, attempt, attempts) {
  const stream = words.stream || "stdout";
  const own = attempts.find((one) => one.attempt === attempt);
  const hasErr = own && own.stderr && own.stderr !== own.stdout;
  const key = `viewer-${number}-${attempt}-${stream}-${words.at || ""}-${words.find || ""}`;
  const root = el("div", { "data-keep": "", "data-key": key });
  if (document.querySelector(`#log [data-key="${CSS.escape(key)}"]`)) return root;  // it is there, and stays
  const box = el("div", { class: "log-box", tabindex: "0", role: "log", "aria-label": "Output", "aria-live": "off" });
  const place = el("span", { class: "soft", "data-place": "" });
  const follow = el("button", { type: "button", "data-follow": "", "aria-pressed": "false" }, "follow");
  const search = el("input", { type: "search", placeholder: "search in the output", "aria-label": "Search in the output" });
  const tools = el("div", { class: "log-tools" },
    attempts.length > 1 ? el("span", {}, "attempt ", ...attempts.map((one) => [el("a", { href: href(`jobs/${number}`, { attempt: one.attempt, stream: words.stream }), ...(one.attempt === attempt ? { "aria-current": "true" } : {}) }, `#${one.attempt}`), " "]).flat()) : null,
    hasErr ? ["stdout", "stderr"].map((name) => el("a", { href: href(`jobs/${number}`, { ...words, stream: name, at: "", find: "" }), ...(name === stream ? { "aria-current": "true" } : {}) }, name)) : null,
    el("button", { type: "button", "data-go": "begin" }, "begin"), el("button", { type: "button", "data-go": "end" }, "end"), follow, search,
    el("button", { type: "button", "data-find": "up", "aria-label": "Previous match" }, "↑"), el("button", { type: "button", "data-find": "down", "aria-label": "Next match" }, "↓"));
  const path = el("p", { class: "path" });
  const link = el("a", { hidden: "", "data-link": "" }, "link to this line");
  root.append(tools, box, path, place, " ", link);

  const shown = [];  // parts: { begin, end, node }
  let whole = 0;
  let busy = 0;  // reads that are under way or wait for their turn
  let turn = Promise.resolve();
  let isFollowing = false;
  let found = null;
  let searches = 0;
  const ask = (query) => get(`jobs/${number}/log`, { attempt, stream, bytes: PART, ...query });
  const note = (part) => {
    whole = part.size_bytes;
    path.textContent = clean(part.path) + (part.is_shared ? " (several attempts wrote to this file)" : "");
    const first = shown[0], last = shown.at(-1);
    place.textContent = part.problem ? clean(part.problem) : whole === 0 ? "It has written nothing." : `${size(first ? last.end - first.begin : 0)} of ${size(whole)} shown${first && first.begin > 0 ? "; older lines above: scroll up" : ""}${last && last.end < whole ? "; newer lines below: scroll down" : ""}.`;
    root.dataset.size = String(whole);
  };
  const make = (part) => ({ begin: part.begin, end: part.end, node: el("pre", {}, coloured(part.text)) });
  const trim = (isFromTop) => {
    while (shown.length > 1 && shown.at(-1).end - shown[0].begin > MOST_SHOWN) (isFromTop ? shown.shift() : shown.pop()).node.remove();
  };
  // What was clicked waits for its turn; what scrolling and following ask for is left out while something is read.
  function inTurn(work) {
    busy += 1;
    turn = turn.then(work).catch((error) => { place.textContent = error.message; setFollow(false); }).finally(() => { busy -= 1; });
    return turn;
  }
  const ifFree = (work) => (busy ? turn : inTurn(work));
  const show = (part) => {
    for (const one of shown) one.node.remove();
    shown.length = 0;
    shown.push(make(part));
    box.replaceChildren(shown[0].node);
    note(part);
  };
  const toEnd = () => inTurn(async () => { show(await ask({})); box.scrollTop = box.scrollHeight; });
  const toPlace = (at) => inTurn(async () => { show(await ask({ at })); box.scrollTop = 0; });
  const older = () => ifFree(async () => {
    if (!shown.length || shown[0].begin === 0) return;
    const part = await ask({ end: shown[0].begin });
    if (part.end <= part.begin) return;
    const before = box.scrollHeight;
    const made = make({ ...part, end: shown[0].begin });
    shown.unshift(made);
    box.prepend(made.node);
    box.scrollTop += box.scrollHeight - before;
    trim(false);
    note(part);
  });
  const newer = () => ifFree(async () => {
    const last = shown.at(-1);
    const part = await ask({ at: last ? last.end : 0 });
    if (last && part.size_bytes < last.end) { show(await ask({})); return; }  // it was cut, or begun again
    if (part.end > part.begin) { const made = make(part); shown.push(made); box.append(made.node); trim(true); }
    note(part);
    if (isFollowing) box.scrollTop = box.scrollHeight;
  });
  function setFollow(isOn) {
    isFollowing = isOn;
    follow.setAttribute("aria-pressed", String(isOn));
  }
  follow.addEventListener("click", () => { setFollow(!isFollowing); if (isFollowing) toEnd(); });
  box.addEventListener("scroll", () => {
    if (box.scrollTop < 80) older();
    else if (box.scrollTop + box.clientHeight > box.scrollHeight - 80) { if (shown.length && shown.at(-1).end < whole) newer(); } else if (isFollowing && box.scrollTop + box.clientHeight < box.scrollHeight - 300) setFollow(false);
  });
  tools.addEventListener("click", (event) => {
    const { go, find } = event.target.dataset;
    if (go === "end") toEnd();
    if (go === "begin") { setFollow(false); toPlace(0); }
    if (find) look(search.value, find);
  });
  search.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); look(search.value, event.shiftKey ? "up" : "down"); } });
  async function look(text, way) {
    if (!text) return;
    setFollow(false);
    const own = ++searches;
    let at = found !== null && found.text === text ? (way === "down" ? found.at + 1 + found.skip : found.at) : way === "down" ? 0 : whole;
    try {
      for (;;) {
        const match = await get(`jobs/${number}/search`, { attempt, stream, text, at, turn: way });
        if (own !== searches) return;  // another search has begun since
        if (match.at !== null) { await reveal(match.at, text); found = { text, at: match.at, skip: match.looked - match.at }; return; }
        if (match.is_over) { say(`no ${way === "down" ? "further" : "earlier"} line has "${text}"`); found = null; return; }
        at = match.looked;
        place.textContent = `searching: ${size(way === "down" ? at : whole - at)} of ${size(whole)} …`;
      }
    } catch (error) { say(error.message); }
  }
  async function reveal(at, text) {
    await toPlace(at);
    const node = shown[0]?.node;
    if (!node) return;
    mark(node, text);
    root.dataset.at = String(at);
    link.href = href(`jobs/${number}`, { attempt: words.attempt, stream: words.stream, at });
    link.hidden = false;
    await older();
    node.querySelector("mark")?.scrollIntoView({ block: "center" });
  }
  (async () => {
    if (words.find) { search.value = words.find; await toEnd(); await look(words.find, "up"); } else if (/^\d+$/.test(words.at || "")) { await toPlace(Number(words.at)); if (shown[0]) mark(shown[0].node, null); } else { await toEnd(); if (!job.is_settled && attempt === job.attempt) setFollow(true); }
    if (words.log || words.at || words.find) root.scrollIntoView({ block: "start" });
    const timer = setInterval(() => {
      if (!root.isConnected) { clearInterval(timer); return; }
      if (isFollowing && !document.hidden) newer();
    }, FOLLOW_MS);
  })();
  return root;
}
// Marks the first place of a text in the first line that has it; without a text, the first line.
function mark(node, text) {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  for (let one = walker.nextNode(); one; one = walker.nextNode()) {
    const at = text === null ? 0 : one.data.toLowerCase().indexOf(text.toLowerCase());
    if (at < 0) continue;
    const end = text === null ? (one.data.indexOf("\n") < 0 ? one.data.length : one.data.indexOf("\n")) : at + text.length;
    const range = document.createRange();
    range.setStart(one, at);
    range.setEnd(one, Math.min(one.data.length, end));
    range.surroundContents(el("mark", {}));
    return;
  }
}
