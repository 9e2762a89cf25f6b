// The page: finds the view that the address names, shows it, and keeps it fresh.
import { NoAnswer, el, get, patchChildren, say, session } from "./parts.js";
import { begin, onChange, onOwn, onTick, watch } from "./live.js";
import * as views from "./views.js";
import { jobView } from "./job.js";
import { submitView } from "./submit.js";
import { listen } from "./actions.js";
import { listenToKeys } from "./keys.js";

const PACE_MS = 250;
const LONGEST_MS = 60000, AGAIN_MS = 3000;  // for an answer; after none came
const main = document.getElementById("main");
const ROUTES = [
  [/^now$/, views.nowView], [/^runs$/, views.runsView], [/^runs\/(\d+)$/, views.runView, "run"], [/^jobs\/(\d+)$/, jobView, "job"],
  [/^compare$/, views.compareView], [/^submit$/, submitView],
];
let shown = null;  // { address, view }
let current = null;  // the load that is under way
let wanted = false;
let isUrgent = false;  // what is wanted is about the one job or run that is shown
let last = { at: 0, took: 0 };

function address() {
  const [path, query] = (location.hash.replace(/^#\/?/, "") || "now").split("?");
  return { path, words: Object.fromEntries(new URLSearchParams(query || "")) };
}
function find(path) {
  for (const [pattern, view, what] of ROUTES) {
    const match = pattern.exec(path);
    if (match) return { view, number: what ? Number(match[1]) : null, subject: what ? `${what}=${match[1]}` : "" };
  }
  return { view: views.nowView, number: null, subject: "" };
}

// `event` is the number of the event that it follows: pages that follow the same event share the answers.
async function load(isNew, event = null) {
  if (current && !isNew) { wanted = true; return; }
  current?.abort();  // nobody waits for the view before
  const own = current = new AbortController();
  const limit = setTimeout(() => own.abort(new NoAnswer("the server does not answer")), LONGEST_MS);
  wanted = isUrgent = false;
  const begun = performance.now();
  const { path, words } = address();
  const { view, number, subject } = find(path);
  watch(subject);
  const place = `${path}?${new URLSearchParams(words)}`;
  try {
    const made = await view(number, words, (route, asked = {}) => get(route, { ...asked, event }, own.signal));
    if (current !== own) return;
    if (place !== `${address().path}?${new URLSearchParams(address().words)}`) return;  // the event that says so comes
    document.title = `${made.title} · aver`;
    const root = el("main", {}, made.nodes), focused = document.activeElement;
    if (shown && shown.path === path) patchChildren(main, root); else main.replaceChildren(...root.childNodes);
    if (focused !== document.activeElement && main.contains(focused)) focused.focus({ preventScroll: true });  // it was moved
    if (!shown || shown.path !== path) { window.scrollTo(0, 0); if (isNew && shown) main.focus({ preventScroll: true }); }
    shown = { path, made };
    made.after?.(main);
  } catch (error) {
    if (current !== own) return;
    if (error instanceof NoAnswer) setTimeout(soon, AGAIN_MS);
    const problem = el("p", { class: "problem", role: "alert" }, error.message);
    if (shown && shown.path === path) { main.querySelector(":scope > .problem")?.remove(); main.prepend(problem); } else main.replaceChildren(problem);
    if (!shown || shown.path !== path) shown = { path, made: {} };
  } finally {
    clearTimeout(limit);
    if (current === own) done(path, begun);
  }
}
function done(path, begun) {
  current = null;
  last = { at: performance.now(), took: performance.now() - begun };
  main.dataset.loads = String(Number(main.dataset.loads || 0) + 1);
  for (const one of document.querySelectorAll("nav a")) {
    if (one.getAttribute("href") === `#/${path.split("/")[0]}`) one.setAttribute("aria-current", "page"); else one.removeAttribute("aria-current");
  }
  if (wanted) soon(null, isUrgent);
}
let timer = null;
let cause = null;  // the event that the next load follows; null: also something else
function soon(event = null, isNow = false) {
  cause = timer === null || cause !== null ? event : null;
  if (timer !== null && !isNow) return;
  clearTimeout(timer);
  const pause = isNow ? 0 : Math.max(0, last.at + Math.max(PACE_MS - last.took, 2 * last.took) - performance.now());
  timer = setTimeout(() => { timer = null; load(false, cause); }, pause);
}

onChange((change) => {
  if (!shown || !shown.made.concerns || !change.is_whole || shown.made.concerns(change)) soon(change.told);
});
onOwn((own) => { isUrgent = current !== null; soon(own.told, true); });
onTick((tick) => { if (shown && shown.made.isMoving) soon(tick.told); });
window.addEventListener("aver-refresh", () => soon());
window.addEventListener("hashchange", () => load(true));
window.addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; });

(async () => {
  try {
    Object.assign(session, await get("session"));
    document.getElementById("footer").textContent = `aver ${session.version} · ${session.user} on ${session.host} · ${session.home}${session.is_read_only ? " · read-only" : ""}`;
  } catch (error) { say(error.message); }
  listen(() => load(false));
  listenToKeys();
  await load(true);
  begin(session.seq);
})();
