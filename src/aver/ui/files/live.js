// The stream of changes: live, reconnecting, or stale since when. A hidden tab closes it, so that many tabs can be open.
// A tick says that what moves without a change, such as memory in use, may be asked for again; `own` that the one job or
// run that is shown stands otherwise.
import { get } from "./parts.js";

const SILENT_S = 15;
const ALL = { runs: [], jobs: [], is_whole: false };  // everything may have changed
const listeners = new Set();
const tickers = new Set();
const owners = new Set();
let source = null;
let after = null;
let heard = Date.now();
let isMissed = null;  // a coordinator, though there is work
let pause = 0;  // seconds between changes in a flood of them
let isGone = false;  // the server: another one is in its place
let subject = "";  // the one job or run that is shown: "job=7"

export const onChange = (listener) => listeners.add(listener);
export const onTick = (listener) => tickers.add(listener);
export const onOwn = (listener) => owners.add(listener);

// The stream hears of this job or run at once from now on, also in a flood of changes.
export function watch(words) {
  if (words === subject) return;
  subject = words;
  if (source) { close(); open(); }
}

function show(state, text) {
  const place = document.getElementById("live");
  if (place.dataset.state !== state || place.textContent !== text) {
    place.dataset.state = state;
    place.textContent = text;
  }
}
const words = () => ["live", isMissed ? "no coordinator" : "", pause >= 1 ? `many changes: updates every ${Math.round(pause)} s` : ""].filter(Boolean).join("; ");

function hear(event) {
  heard = Date.now();
  after = event.lastEventId;
  const data = JSON.parse(event.data);
  const before = isMissed;
  if (event.type === "beat") isMissed = data.is_coordinator_missed;
  if (data.pause_s !== undefined) pause = data.pause_s;
  show("live", words());
  if (event.type === "tick") for (const ticker of tickers) ticker(data);
  else if (event.type === "own") for (const owner of owners) owner(data);
  else if (event.type === "change") tell(data);
  else if (before !== null && before !== isMissed) tell(ALL);
}
function tell(data) { for (const listener of listeners) listener(data); }

function open() {
  if (source || isGone) return;
  source = new EventSource(`api/events?${after === null ? "" : `after=${after}`}&${subject}`);
  for (const kind of ["beat", "change", "own", "tick"]) source.addEventListener(kind, hear);
  source.addEventListener("open", () => { if (heard < Date.now() - 3000) tell(ALL); });
  source.addEventListener("error", () => {
    show("reconnecting", "reconnecting");
    if (source && source.readyState === EventSource.CLOSED) { close(); setTimeout(again, 2000); }
  });
}
// After a refusal: a server that was begun anew knows neither this address nor its cookie.
async function again() {
  if (document.hidden || isGone) return;
  try { await get("session"); } catch (error) { isGone = error.status === 403; }
  if (isGone) show("stale", "this server has ended: open the link that the new `aver ui` printed"); else open();
}
function close() {
  if (source) source.close();
  source = null;
}
export function begin(seq) {
  after = seq ?? null;
  open();
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
  setInterval(() => {
    heard = Math.min(heard, Date.now());  // a clock may be set back
    if (isGone) return;
    if (Date.now() - heard > SILENT_S * 1000 && !document.hidden) {
      show("stale", `stale since ${new Date(heard).toLocaleTimeString("sv")}`);
      if (source && source.readyState === EventSource.OPEN) { close(); open(); }
    }
  }, 1000);
}
