// The stream of changes: live, reconnecting, or stale since when. A hidden tab closes it, so that many tabs can be open.
// A tick says that what moves without a change, such as memory in use, may be asked for again.
const SILENT_S = 15;
const listeners = new Set();
const tickers = new Set();
let source = null;
let after = null;
let heard = Date.now();
let isMissed = null;  // a coordinator, though there is work

export const onChange = (listener) => listeners.add(listener);
export const onTick = (listener) => tickers.add(listener);

function show(state, text) {
  const place = document.getElementById("live");
  if (place.dataset.state !== state || place.textContent !== text) {
    place.dataset.state = state;
    place.textContent = text;
  }
}
const words = () => (isMissed ? "live; no coordinator" : "live");

function hear(event) {
  heard = Date.now();
  after = event.lastEventId;
  const data = JSON.parse(event.data);
  if (event.type === "tick") {
    show("live", words());
    for (const ticker of tickers) ticker(data);
    return;
  }
  if (event.type === "beat") {
    const before = isMissed;
    isMissed = data.is_coordinator_missed;
    show("live", words());
    if (before !== null && before !== isMissed) tell({ runs: [], jobs: [], is_whole: false });
    return;
  }
  show("live", words());
  tell(data);
}
function tell(data) { for (const listener of listeners) listener(data); }

function open() {
  if (source) return;
  source = new EventSource(`api/events${after === null ? "" : `?after=${after}`}`);
  source.addEventListener("beat", hear);
  source.addEventListener("change", hear);
  source.addEventListener("tick", hear);
  source.addEventListener("open", () => { if (heard < Date.now() - 3000) tell({ runs: [], jobs: [], is_whole: false }); });
  source.addEventListener("error", () => {
    show("reconnecting", "reconnecting");
    if (source && source.readyState === EventSource.CLOSED) { close(); setTimeout(() => { if (!document.hidden) open(); }, 2000); }
  });
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
    if (Date.now() - heard > SILENT_S * 1000 && !document.hidden) {
      show("stale", `stale since ${new Date(heard).toLocaleTimeString("sv")}`);
      if (source && source.readyState === EventSource.OPEN) { close(); open(); }
    }
  }, 1000);
}
