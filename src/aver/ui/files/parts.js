// What all views share: asking the server, elements whose texts are only ever text, and the patching of what is shown.
import { make, duration, bytes, badge, clock } from "./elements.js";

export { badge, clock };
export const WORST_FIRST = ["OUT_OF_MEMORY", "FAILED", "DEADLINE", "NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "TIMEOUT", "CANCELLED",
  "UNVERIFIED", "CHECKPOINTED", "RUNNING", "COMPLETING", "SETTLING", "SUBMITTED", "SUSPENDED", "PENDING", "SKIPPED", "COMPLETED"];
export const session = {};

// ---- the server ------------------------------------------------------------------------------------
// No answer came: what was asked may have been done, or not.
export class NoAnswer extends Error {}
async function answer(asked) {
  let response, data;
  try { response = await asked; } catch (error) { throw error instanceof TypeError ? new NoAnswer("the server does not answer") : error; }
  try { data = await response.json(); } catch { throw new Error(`the server answered ${response.status} without a document`); }
  if (!response.ok) throw Object.assign(new Error(data.error || `the server answered ${response.status}`), { status: response.status });
  return data;
}
export async function get(path, words = {}, signal = null) {
  const query = new URLSearchParams(Object.entries(words).filter(([, value]) => value !== undefined && value !== null && value !== ""));
  return answer(fetch(`api/${path}${query.size ? `?${query}` : ""}`, { signal }));
}
export async function post(path, body) {
  return answer(fetch(`api/act/${path}`, {
    method: "POST", headers: { "content-type": "application/json", "x-aver-change": session.change || "" }, body: JSON.stringify(body),
  }));
}

// ---- texts -----------------------------------------------------------------------------------------
// Control characters, and those that turn the direction of a text, are spelled out.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
export const clean = (text) => String(text).replace(UNSEEN, (sign) => {
  const code = sign.charCodeAt(0);
  return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
});
export const el = (tag, attributes, ...children) =>
  make(tag, attributes, ...children.flat().map((child) => (child instanceof Node || child === null || child === undefined ? child : clean(child))));
export const seconds = (value) => (value === null || value === undefined ? "" : duration(value * 1000));
export const size = (value) => (value === null || value === undefined ? "" : value < 1024 ? `${value} B` : bytes(value / 1024));
export const moment = (at) => (at === null || at === undefined ? "" : new Date(at * 1000).toLocaleString("sv"));
export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
export const mark = (job) => (job.verified === false && job.is_settled && job.state !== "UNVERIFIED" ? "*" : "") + (job.warnings.length ? "!" : "");
export const stateBadge = (job) => {
  const made = badge(job.state, mark(job));
  if (mark(job).includes("*")) made.title = "believed, and not verified";
  return made;
};
// Words as a shell takes them; a script is one word, and is shown as it is.
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`);
export const shell = (words) => (words.length === 1 ? words[0] : words.map(quoted).join(" "));
export const href = (path, words = {}) => {
  const query = new URLSearchParams(Object.entries(words).filter(([, value]) => value !== undefined && value !== null && value !== ""));
  return `#/${path}${query.size ? `?${query}` : ""}`;
};
export const link = (to, text, attributes = {}) => el("a", { href: to, class: "plain", ...attributes }, text);
/** A job's name, which is broken before its member's values rather than inside a word. */
export const nameText = (name) => {
  const at = name.indexOf("[");
  return at > 0 ? [name.slice(0, at), el("wbr", {}), name.slice(at)] : name;
};

export function bar(counts) {
  const parts = WORST_FIRST.filter((state) => counts[state]).map((state) => {
    const part = el("span", { class: `s-${state}` });
    part.style.flexGrow = counts[state];
    part.title = `${counts[state]} ${state}`;
    return part;
  });
  const words = WORST_FIRST.filter((state) => counts[state]).map((state) => `${counts[state]} ${state}`).join(", ");
  return el("div", { class: "states thin", role: "img", "aria-label": words || "no jobs" }, parts);
}
export const countList = (counts) => el("ul", { class: "counts" }, WORST_FIRST.filter((state) => counts[state]).map((state) =>
  el("li", { class: `s-${state}` }, el("b", {}, counts[state].toLocaleString("en")), ` ${state}`)));
export const facts = (pairs) => el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined).map(([name, value, kind]) =>
  el("div", kind ? { class: kind } : {}, el("dt", {}, name), el("dd", {}, value))));
export function table(heads, rows, attributes = {}) {
  return el("div", { class: "wide" }, el("table", { class: "rows", ...attributes },
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col", class: head.kind || "", ...(head.sort ? { "aria-sort": head.sort } : {}) }, head.node || head.text)))),
    el("tbody", {}, rows)));
}
export const cell = (kind, ...children) => el("td", kind ? { class: kind } : {}, ...children);

export function say(text) {
  const place = document.getElementById("said");
  place.textContent = clean(text);
  place.hidden = false;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { place.hidden = true; }, 8000);
}

// ---- patching --------------------------------------------------------------------------------------
// Makes `old` look like `made` and keeps what is the same: focus, selection and scroll places stay. An element with
// data-keep belongs to somebody else and is left alone while its key is the same; a field in which somebody types keeps
// what was typed.
export const typing = new Set();
const key = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null);
function isAlike(old, made) {
  return old.nodeType === made.nodeType && old.nodeName === made.nodeName && key(old) === key(made);
}
export function patch(old, made) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return;
  }
  if (old.hasAttribute("data-keep") && made.hasAttribute("data-keep")) return;
  for (const { name } of [...old.attributes]) if (name !== "style" && !made.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  for (const { name, value } of [...made.attributes]) if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.nodeName === "INPUT" && !typing.has(old) && old.value.trim() !== made.value) old.value = made.value;
  if (made.style.cssText !== old.style.cssText) old.style.cssText = made.style.cssText;
  patchChildren(old, made);
}
export function patchChildren(old, made) {
  const keyed = new Map([...old.childNodes].filter((child) => key(child) !== null).map((child) => [key(child), child]));
  let place = old.firstChild;
  for (const child of [...made.childNodes]) {
    let match = key(child) !== null ? keyed.get(key(child)) : place;
    if (match && !isAlike(match, child)) match = null;
    keyed.delete(key(child));
    if (!match) { old.insertBefore(child, place); continue; }
    if (match !== place) old.insertBefore(match, place); else place = place.nextSibling;
    patch(match, child);
  }
  while (place) { const next = place.nextSibling; place.remove(); place = next; }
}
