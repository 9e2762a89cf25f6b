// What can be done: buttons, the question before each of them, and the commands that one can type instead.
import { NoAnswer, clean, count, el, href, link, post, say, session, typing } from "./parts.js";
import { openPart } from "./views.js";

const TELLS = {
  cancel: ["Cancel", "What runs gets TERM now, and KILL after its kill wait. What waits never starts. Jobs that need it are skipped."],
  force: ["Kill", "Sends KILL at once, without TERM: what runs can't save anything. The verdict is CANCELLED."],
  signal: ["Send a signal", "Sends the signal to every process of what runs. It does not cancel anything."],
  hold: ["Hold", "It does not start until it is released."],
  release: ["Release", "It starts when there is room."],
  suspend: ["Suspend", "Its processes are stopped; its time limit is paused."],
  resume: ["Resume", "Its processes go on."],
  retry: ["Retry", "Jobs that failed, were lost or cancelled run again; what was skipped below them comes back."],
  accept: ["Accept", "You vouch that it completed, though nobody saw its end. Your name is kept as evidence."],
  recover: ["Recover", ""],
};
const DOUBLE_MS = 500;
const GRAVE = new Set(["cancel", "force", "signal", "accept"]);

export function actionButtons(subject) {
  if (session.is_read_only) return null;
  const words = [];
  if (subject.run) {
    if (!subject.isSettled) words.push("cancel");
    if (subject.isSettled && Object.keys(subject.counts).some((state) => !["COMPLETED", "SKIPPED"].includes(state))) words.push("retry", "recover");
  } else {
    if (!subject.isSettled) words.push("cancel");
    if (["RUNNING", "COMPLETING", "SUSPENDED"].includes(subject.state)) words.push("force", "signal");
    if (subject.state === "RUNNING") words.push("suspend");
    if (subject.state === "SUSPENDED") words.push("resume");
    if (subject.state === "PENDING") words.push(subject.reason === "JobHeldUser" ? "release" : "hold");
    if (subject.isSettled && subject.state !== "SKIPPED") words.push("retry");
    if (["UNVERIFIED", "NODE_FAIL"].includes(subject.state)) words.push("accept");
  }
  const number = subject.run || subject.job;
  const what = subject.run ? "run" : "job";
  return el("div", { class: "actions", role: "group", "aria-label": "Actions" }, words.map((word) =>
    el("button", { type: "button", class: GRAVE.has(word) ? "grave" : "", "data-act": word, "data-number": number, "data-what": what, "data-key": `act-${word}` }, TELLS[word][0])));
}

// Commands as one can type them, each with a button that copies it, and one that does it where the page can.
export function commandList(commands) {
  return el("ul", { class: "commands" }, commands.map((command) => el("li", {}, el("code", {}, command), " ",
    el("button", { type: "button", class: "copy", "data-copy": command, "aria-label": `Copy ${clean(command)}` }, "copy"), " ", button(command))));
}
function button(command) {
  const match = /^aver (cancel|retry|recover|accept|release|hold|log|why) (\d+)( --dry-run| --force)?$/.exec(command);
  if (!match) return null;
  const [, word, number, option] = match;
  if (word === "log" || word === "why") return link(href(`jobs/${number}`, word === "log" ? { log: "end" } : {}), word === "log" ? "open the log" : "open", { class: "" });
  if (session.is_read_only) return null;
  const name = option === " --force" ? "force" : word;
  return el("button", { type: "button", class: GRAVE.has(name) ? "grave" : "", "data-act": name, "data-number": number, "data-what": "" }, TELLS[name][0]);
}

// One question at a time: it is answered by a button, closed by Escape, by the next question or with its view.
let answerOpen = () => {};
let turnedAt = 0;  // when a question was opened or closed
export function ask(title, nodes, confirm, kind) {
  answerOpen(null);
  const dialog = document.getElementById("dialog");
  return new Promise((resolve) => {
    const form = el("form", { method: "dialog" }, el("h3", { id: "dialog-title" }, title), nodes,
      el("div", { class: "dialog-end" }, el("button", { type: "button", "data-no": "" }, confirm ? "Not now" : "Close"), confirm ? el("button", { value: "yes", class: kind }, confirm) : null));
    answerOpen = (value) => { answerOpen = () => {}; turnedAt = Date.now(); dialog.close(); resolve(value); };
    form.addEventListener("submit", (event) => { event.preventDefault(); answerOpen(new FormData(form)); });
    form.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.repeat) event.preventDefault(); });  // of the key that opened it
    form.querySelector("[data-no]").addEventListener("click", () => answerOpen(null));
    dialog.onclose = () => { if (!dialog.open) answerOpen(null); };  // the event of the question before may come late
    dialog.replaceChildren(form);
    dialog.showModal();
    turnedAt = Date.now();
    (form.querySelector("input") || form.querySelector("button"))?.focus();
  });
}
async function act(word, number, what, refresh) {
  const name = `${what ? `${what} ` : ""}${number}`;
  if (word === "recover") return recover(number, refresh);
  const nodes = [el("p", {}, TELLS[word][1])];
  if (word === "signal") nodes.push(el("label", {}, "signal", el("input", { name: "signal", value: "USR1", required: "", maxlength: "12" })));
  nodes.push(el("label", {}, "reason (kept with your name)", el("input", { name: "reason", maxlength: "500", autocomplete: "off" })));
  const given = await ask(`${TELLS[word][0]} ${name}?`, nodes, `${TELLS[word][0]} ${name}`, GRAVE.has(word) ? "grave" : "");
  if (!given) return;
  const body = { ids: [number], reason: given.get("reason") || "" };
  if (word === "force") body.force = true;
  if (word === "signal") body.signal = given.get("signal");
  const done = await send(word === "force" ? "cancel" : word, body, refresh);
  say(done.results.slice(0, 5).map((one) => `${one.id}: ${one.did}`).join("; ") + (done.results.length > 5 ? ` and ${done.results.length - 5} more` : ""));
  refresh();
}
async function send(word, body, refresh) {
  try { return await post(word, body); } catch (error) {
    refresh();
    throw error instanceof NoAnswer ? new Error(`${error.message}: it may have been done`) : error;
  }
}
async function recover(number, refresh) {
  const title = `Recover run ${number}?`;
  let isClosed = false;
  ask(title, [el("p", {}, "Looking for what can be recovered …")], null, "").then(() => { isClosed = true; });
  const plan = await post("recover", { ids: [number], preview: true }).catch((error) => { if (!isClosed) answerOpen(null); throw error; });
  if (isClosed) return;
  const lines = [
    ...plan.jobs.map((one) => el("li", {}, `${one.name} runs again: ${one.why}`)),
    ...plan.hopeless.map((one) => el("li", {}, `${one.name} is left alone: ${one.why}`)),
  ];
  const nodes = [
    el("p", {}, plan.jobs.length ? `${count(plan.jobs.length, "job")} to run again; ${plan.waiting} more when the jobs that they need complete.` : "Nothing to recover: another attempt would not help the jobs that failed."),
    plan.changes.length ? el("p", {}, plan.file ? `In ${plan.file}:` : "In the run:") : null,
    plan.changes.length ? el("ul", {}, plan.changes.map((one) => el("li", {}, `${one.job}: ${one.key} ${one.old ?? "none"} to ${one.new} (${one.why})`))) : null,
    plan.diff ? el("pre", {}, plan.diff) : null,
    lines.length ? el("ul", {}, lines.slice(0, 50), lines.length > 50 ? el("li", {}, `and ${lines.length - 50} more`) : null) : null,
  ];
  const given = await ask(title, nodes, plan.jobs.length ? "Recover" : null, "");
  if (!given) return;
  const done = await send("recover", { ids: [number], preview: false }, refresh);
  say(`run ${number} goes on in round ${done.round}`);
  refresh();
}

export function listen(refresh) {
  // The second click of a double click is for what the first one met: not for a question that it opened or uncovered.
  document.addEventListener("click", (event) => { if (event.detail > 1 && Date.now() - turnedAt < DOUBLE_MS) { event.preventDefault(); event.stopPropagation(); } }, true);
  window.addEventListener("hashchange", () => answerOpen(null));
  for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());  // a file beside its place opens nothing
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); document.getElementById("main").focus(); });
  document.addEventListener("click", async (event) => {
    const target = event.target.closest?.("[data-act], [data-copy], [data-part], [data-chip], [data-order], [data-within]");
    if (!target) return;
    try {
      if (target.dataset.act) await act(target.dataset.act, Number(target.dataset.number), target.dataset.what, refresh);
      else if (target.dataset.copy) { await navigator.clipboard.writeText(target.dataset.copy); say("copied"); }
      else if (target.dataset.part) { const [run, name] = target.dataset.part.split("/"); openPart(Number(run), name); refresh(); }
      else if (target.dataset.chip) change((words) => toggle(words, target.dataset.chip));
      else if (target.dataset.within) change((words) => ({ ...words, within: words.within === target.dataset.within ? "" : target.dataset.within, after: "" }));
      else if (target.dataset.order) change((words) => order(words, target.dataset.order));
    } catch (error) { say(error.message); }
  });
  let timer = null;
  document.addEventListener("input", (event) => {
    const field = event.target, name = field.dataset?.filterField;
    if (!name) return;
    clearTimeout(timer);
    typing.add(field);
    timer = setTimeout(() => {
      typing.clear();
      if (field.isConnected) change((words) => ({ ...words, [name]: field.value.trim(), after: "" }), true);
    }, 200);
  });
  window.addEventListener("hashchange", () => { clearTimeout(timer); typing.clear(); });
  document.addEventListener("submit", (event) => { if (event.target.dataset.filter !== undefined) event.preventDefault(); });
}
function toggle(words, state) {
  const chosen = new Set((words.state || "").split(",").filter(Boolean));
  if (!chosen.delete(state)) chosen.add(state);
  return { ...words, state: [...chosen].join(","), after: "" };
}
function order(words, name) {
  const isSame = (words.order || "state") === name;
  return { ...words, order: name, turn: isSame && words.turn !== "down" ? "down" : "", after: "" };
}
function change(make, isSilent = false) {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const to = href(path, make(Object.fromEntries(new URLSearchParams(query || ""))));
  if (isSilent) { history.replaceState(null, "", to); window.dispatchEvent(new HashChangeEvent("hashchange")); } else location.hash = to;
}
