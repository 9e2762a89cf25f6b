// The views of many jobs: now, runs, a run, two runs. Each makes elements of documents, which it asks for by `get`.
import { WORST_FIRST, badge, bar, cell, clean, count, countList, el, facts, href, link, moment, nameText, say, seconds, shell, size, stateBadge, table } from "./parts.js";
import { actionButtons, commandList } from "./actions.js";
import { drawGraph } from "./graph.js";

const jobRow = (job, ...cells) => el("tr", { "data-key": `job-${job.id}`, "data-row": href(`jobs/${job.id}`) }, cells);
const jobLink = (job) => link(href(`jobs/${job.id}`), String(job.id));
const left = (number, what) => (number > 0 ? el("p", { class: "none" }, `${count(number, what)} more, not shown here.`) : null);

// ---- now -------------------------------------------------------------------------------------------
export async function nowView(_number, _words, get) {
  const now = await get("now");
  const { machine, coordinator } = now;
  const meter = (used, whole) => {
    const made = el("span", { class: "meter" });
    made.style.setProperty("--v", `${whole ? Math.min(100, (100 * used) / whole) : 0}%`);
    return made;
  };
  const partly = machine.measured < machine.running ? ` by the ${machine.measured} of ${count(machine.running, "job")} that can be measured` : "";
  const inUse = (value, text) => (value === null ? "use not known" : `${text(value)} in use${partly}`);
  const runs = now.running.items.map(({ job, note, use }) => jobRow(job, cell("number", jobLink(job)),
    cell("name", link(href(`jobs/${job.id}`), nameText(job.name)), el("div", { class: "soft" }, link(href(`runs/${job.run}`), `run ${job.run}`))), cell("", stateBadge(job)),
    cell("number", seconds(job.started_at === null ? null : now.at - job.started_at)),
    cell("rare", use ? `${use.cpus_now === null ? "?" : use.cpus_now.toFixed(1)} of ${use.cpus}` : "not known"),
    cell("rare", use ? [`${size(use.memory_now_bytes)}${use.mem_bytes === null ? ", no limit" : ` of ${size(use.mem_bytes)}`}`, use.mem_bytes ? meter(use.memory_now_bytes, use.mem_bytes) : null] : "not known"),
    cell("why", note)));
  const others = (items) => items.map(({ job, note }) => jobRow(job, cell("number", jobLink(job)), cell("name", link(href(`jobs/${job.id}`), nameText(job.name))),
    cell("", stateBadge(job)), cell("why", note), cell("number rare", job.is_settled ? moment(job.ended_at) : seconds(now.at - job.submitted_at))));
  const part = (id, title, list, body, none) => el("section", { id, "data-key": id }, el("h2", {}, `${title} (${(list.items.length + list.left_out).toLocaleString("en")})`),
    list.items.length ? body : el("p", { class: "none" }, none), left(list.left_out, "job"));
  const heads = (last) => [{ text: "job", kind: "number" }, { text: "name" }, { text: "state" }, { text: "why" }, { text: last, kind: "number rare" }];
  return {
    title: `${now.running.items.length + now.running.left_out} running`,
    isMoving: now.running.items.length > 0,
    nodes: [
      el("h1", {}, "Now"),
      coordinator.is_running || !(coordinator.running || coordinator.pending) ? null : el("p", { class: "notice" }, coordinator.detail),
      facts([
        ["coordinator", coordinator.is_running ? `runs (${coordinator.pid})` : "none runs; the next command that needs one starts it"],
        ["CPUs", [`${machine.cpus_asked} of ${machine.cpus} asked for, ${inUse(machine.cpus_used, (value) => value.toFixed(1))}`, meter(machine.cpus_asked, machine.cpus)]],
        ["memory", [`${size(machine.memory_asked_bytes)} of ${size(machine.memory_bytes)} asked for, ${inUse(machine.memory_used_bytes, size)}`, meter(machine.memory_asked_bytes, machine.memory_bytes)]],
        ["GPUs", machine.gpus ? `${machine.gpus_asked} of ${machine.gpus} asked for` : "none here"],
      ]),
      part("running", "Running", now.running, table([{ text: "job", kind: "number" }, { text: "name" }, { text: "state" }, { text: "for", kind: "number" },
        { text: "CPUs now", kind: "rare" }, { text: "memory now", kind: "rare" }, { text: "doing" }], runs), "Nothing runs."),
      part("settling", "Settling", now.settling, table(heads("since"), others(now.settling.items)), "Nothing settles."),
      part("waiting", "Waiting", now.waiting, table(heads("since"), others(now.waiting.items)), "Nothing waits."),
      part("failed", "Failed since yesterday", now.failed, table(heads("ended"), others(now.failed.items)), "Nothing failed since yesterday."),
    ],
  };
}

// ---- filters ---------------------------------------------------------------------------------------
function filterForm(words, fields) {
  return el("form", { class: "filter", role: "search", "data-filter": "", "data-key": "filter" }, fields.map(([name, hint]) => {
    const input = el("input", { type: "search", name, placeholder: hint, "aria-label": hint, autocomplete: "off", "data-filter-field": name });
    input.value = words[name] || "";
    input.setAttribute("value", words[name] || "");
    return input;
  }));
}
function stateChips(words, counts) {
  const chosen = new Set((words.state || "").split(",").filter(Boolean));
  return el("div", { class: "chips", role: "group", "aria-label": "States" }, WORST_FIRST.filter((state) => counts === null || counts[state] || chosen.has(state)).map((state) =>
    el("button", { type: "button", class: `s-${state}`, "aria-pressed": String(chosen.has(state)), "data-chip": state, "data-key": `chip-${state}` }, counts === null ? state : `${state} ${(counts[state] || 0).toLocaleString("en")}`)));
}

// ---- runs ------------------------------------------------------------------------------------------
export async function runsView(_, words, get) {
  const { within } = words;
  const page = await get("runs", words);
  const rows = page.runs.map(({ run, believed }) => el("tr", { "data-key": `run-${run.id}`, "data-row": href(`runs/${run.id}`) },
    cell("number", link(href(run.is_single ? `jobs/${run.first_job}` : `runs/${run.id}`), String(run.id))),
    cell("name", link(href(run.is_single ? `jobs/${run.first_job}` : `runs/${run.id}`), run.name), el("div", { class: "soft rare" }, `${run.folder} (${run.engines.join(", ")})`)),
    cell("", badge(run.state, believed ? "*" : "")),
    cell("wide-bar", bar(run.counts), el("div", { class: "soft" }, WORST_FIRST.filter((state) => run.counts[state]).map((state) => `${run.counts[state].toLocaleString("en")} ${state}`).join(", "), believed ? ` (${believed} believed, *)` : "")),
    cell("number rare", run.round > 1 ? `round ${run.round}` : ""),
    cell("number rare", moment(run.submitted_at)),
    cell("number", run.ended_at === null ? "" : seconds(run.ended_at - run.submitted_at))));
  return {
    title: "Runs",
    concerns: () => true,
    nodes: [
      el("h1", {}, "Runs"),
      filterForm(words, [["text", "name or number"], ["folder", "folder"], ["engine", "engine, such as slurm"]]),
      el("div", { class: "chips", role: "group", "aria-label": "Not ended before" }, [["3600", "last hour"], ["86400", "last day"], ["604800", "last week"]].map(([time, text]) =>
        el("button", { type: "button", class: "s-RUNNING", "aria-pressed": String(within === time), "data-within": time, "data-key": `within-${time}` }, text))),
      stateChips(words, null),
      el("p", { class: "soft", role: "status" }, page.next ? `${count(page.runs.length, "run")}, newest first; older ones follow.` : `${count(page.runs.length, "run")}.`),
      table([{ text: "run", kind: "number" }, { text: "name" }, { text: "state" }, { text: "jobs by verdict" }, { text: "", kind: "rare" }, { text: "submitted", kind: "number rare" }, { text: "took", kind: "number" }], rows),
      el("p", { class: "pages" }, words.after ? link(href("runs", { ...words, after: "" }), "newest", { class: "" }) : null, " ",
        page.next ? link(href("runs", { ...words, after: page.next }), "older", { class: "", rel: "next" }) : null),
    ],
  };
}

// ---- a run -----------------------------------------------------------------------------------------
const MOST_NODES = 80, MOST_COUNTED = 1000;  // of a graph that is shown at once: nodes, and jobs that are counted for it
const kept = new Map();  // what was opened in a run and is read only then: by run and part
export async function runView(number, words, get) {
  const [run, page] = await Promise.all([get(`runs/${number}`), get(`runs/${number}/jobs`, words)]);
  if (run.definitions <= MOST_NODES && Object.values(run.run.counts).reduce((sum, many) => sum + many, 0) <= MOST_COUNTED) openPart(number, "groups");
  const causes = await quickly(get, `runs/${number}/causes`);
  const opened = await Promise.all([...(kept.get(number) || [])].filter((name) => name !== "grid" || words.group).map(async (name) => [name, await get(`runs/${number}/${name}`, name === "grid" ? { group: words.group } : {})]));
  const parts = Object.fromEntries(opened);
  const path = `runs/${number}`;
  const facts_ = run.run;
  return {
    title: `run ${number} ${clean(facts_.name)}: ${facts_.state}`,
    isMoving: !facts_.is_settled || (causes && Object.entries(facts_.counts).some(([state, many]) => causes.counts[state] !== many)),
    concerns: (change) => change.runs.includes(number),
    nodes: [
      el("h1", {}, el("small", {}, `run ${number}`), ` ${clean(facts_.name)} `, badge(facts_.state, run.believed ? "*" : "")),
      bar(facts_.counts), countList(facts_.counts),
      el("p", { id: "sentence" }, run.sentence),
      actionButtons({ run: number, state: facts_.state, isSettled: facts_.is_settled, counts: facts_.counts }),
      facts([["submitted", moment(facts_.submitted_at)], ["ended", moment(facts_.ended_at) || "not settled yet"],
        [facts_.is_settled ? "took" : "so far", seconds(run.ended_at - facts_.submitted_at)], ["round", String(facts_.round)], ["by", `${run.user} on ${run.host}`],
        ["not selected", facts_.unselected.join(", ")], ["params", Object.entries(run.params).map(([name, value]) => `${name}=${value}`).join(" ")],
        ["in", facts_.folder, "long"], ["typed", shell(run.typed), "long"]]),
      el("section", { id: "causes", "data-key": "causes" }, el("h2", {}, "Causes"), !causes ? el("p", { class: "none" }, "Looking for causes …") : causes.causes.length ? causes.causes.map(causeBox) : el("p", { class: "none" }, causes.unsettled ? `Nothing failed; ${count(causes.unsettled, "job")} not settled yet.` : "Nothing failed.")),
      el("section", { id: "graph", "data-key": "graph" }, el("h2", {}, "Graph"), onDemand(number, "groups", "Show the graph", parts.groups && drawGraph(number, parts.groups))),
      words.group ? el("section", { id: "grid", "data-key": "grid" }, el("h2", {}, "Members"), onDemand(number, "grid", "Show the members as a grid", parts.grid && drawGrid(parts.grid))) : null,
      el("section", { id: "use", "data-key": "use" }, el("h2", {}, "Asked for and used"), onDemand(number, "usage", "Show the use", parts.usage && useTable(parts.usage))),
      el("section", { id: "jobs", "data-key": "jobs" }, el("h2", {}, "Jobs"), filterForm(words, [["text", "name, number or reason"]]),
        words.group ? el("p", {}, link(href(path, { ...words, group: "" }), "all groups ×", { class: "" })) : null,
        stateChips(words, facts_.counts), jobsTable(path, words, page, run)),
      el("p", {}, link(href("compare", { second: number }), "compare with another run", { class: "" })),
    ],
  };
}
// What takes long in a huge run does not keep the rest from being shown: it follows when it is there.
const answers = new Map();
async function quickly(get, path) {
  const asked = get(path).then((found) => { answers.clear(); answers.set(path, found); return found; });
  const first = await Promise.race([asked, new Promise((resolve) => { setTimeout(resolve, 150, null); })]);
  if (first) return first;
  asked.then(() => window.dispatchEvent(new Event("aver-refresh")), (error) => say(error.message));
  return answers.get(path) || null;
}
export function openPart(number, name) {
  if (!kept.has(number)) kept.set(number, new Set());
  kept.get(number).add(name);
}
const onDemand = (number, name, title, body) => body || el("button", { type: "button", "data-part": `${number}/${name}` }, title);

function causeBox(cause) {
  const shown = cause.jobs.map((job) => [link(href(`jobs/${job}`), String(job), { class: "" }), " "]);
  return el("div", { class: `cause s-${cause.state}`, "data-key": `cause-${cause.state}-${cause.sentence}` },
    el("p", {}, badge(cause.state), " ", el("b", {}, cause.sentence)),
    el("p", { class: "soft" }, cause.count === 1 ? "job " : `${cause.count.toLocaleString("en")} jobs: `, ...shown.flat(), cause.count > cause.jobs.length ? `and ${(cause.count - cause.jobs.length).toLocaleString("en")} more in the table below` : ""),
    cause.hints.map((hint) => el("p", {}, el("span", { class: "soft" }, `hint (${hint.name}), in ${count(hint.count, "log")}: `), el("code", {}, hint.line), ` ${hint.advice}`)),
    commandList(cause.next));
}
function useTable(usage) {
  const rows = usage.groups.map((group) => el("tr", { "data-key": `use-${group.name}` }, cell("name", group.name), cell("number", group.jobs.toLocaleString("en")),
    ...["mem", "cpus", "time"].map((name) => cell("", useText(name, group[name])))));
  return el("div", {}, table([{ text: "group" }, { text: "jobs", kind: "number" }, { text: "memory" }, { text: "CPUs" }, { text: "time" }], rows),
    usage.left_out ? el("p", { class: "none" }, `${count(usage.left_out, "group")} more, not shown here.`) : null);
}
function useText(name, use) {
  const show = (value) => (value === null || value === undefined ? "?" : name === "mem" ? size(value) : name === "time" ? seconds(value) : Number(value).toFixed(1));
  const share = use.share === null || use.share === undefined ? "" : ` (${Math.round(100 * use.share)} %)`;
  return use.asked === null ? `${show(use.used)}, no limit` : `${show(use.used)} of ${show(use.asked)}${share}`;
}
const MOST_COLUMNS = 60;
function drawGrid(grid) {
  return el("div", {}, gridByAxes(grid) || el("div", { class: "grid" }, grid.cells.map(gridCell)), left(grid.left_out, "member"));
}
const gridCell = (one) => el("a", { "data-key": `cell-${one.job}`, href: href(`jobs/${one.job}`), class: `s-${one.state}${one.believed ? " believed" : ""}`,
  title: `${clean(one.name)}: ${one.state}${one.believed ? "*" : ""}`, "aria-label": `${clean(one.name)}: ${one.state}` });
// Two axes and more: a column for each value of the last one, a row for each combination of the others.
function gridByAxes(grid) {
  const last = grid.axes.length - 1;
  const columns = [...new Set(grid.cells.map((one) => one.values[last]))];
  if (last < 1 || columns.length > MOST_COLUMNS) return null;
  const rows = new Map();
  for (const one of grid.cells) {
    const row = JSON.stringify(one.values.slice(0, last));
    if (!rows.has(row)) rows.set(row, { label: one.values.slice(0, last).map((value, at) => `${grid.axes[at]}=${value}`).join(" "), cells: new Map() });
    const cells = rows.get(row).cells;
    cells.set(one.values[last], [...(cells.get(one.values[last]) || []), one]);
  }
  return el("div", { class: "scroll" }, el("table", { class: "grid-table" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, clean(grid.axes[last])), columns.map((value) => el("th", { scope: "col" }, clean(value))))),
    el("tbody", {}, [...rows.entries()].map(([key, row]) => el("tr", { "data-key": `row-${key}` }, el("th", { scope: "row" }, clean(row.label)),
      columns.map((value) => el("td", {}, el("div", { class: "grid" }, (row.cells.get(value) || []).map(gridCell)))))))));
}

const COLUMNS = [["job", "id", "number"], ["name", "name", ""], ["state", "state", ""], ["why", null, ""], ["attempts", "attempt", "number rare"], ["when", "start", "wide-bar rare"], ["took", "time", "number"], ["peak memory", "mem", "number rare"]];
function jobsTable(path, words, page, run) {
  const order = words.order || "state";
  const heads = COLUMNS.map(([title, name, kind]) => (name === null ? { text: title, kind } : {
    kind, sort: order === name ? (words.turn === "down" ? "descending" : "ascending") : null,
    node: el("button", { type: "button", "data-order": name }, title + (order === name ? (words.turn === "down" ? " ↓" : " ↑") : "")),
  }));
  const begun = run.begun_at, span = Math.max(0.1, run.ended_at - begun);
  const rows = page.jobs.map(({ job, note }) => {
    const line = el("div", { class: "bar-line" });
    if (job.started_at !== null) {
      const part = el("span", { class: `s-${job.state}` });
      const end = job.ended_at ?? run.ended_at;
      part.style.left = `${Math.min(99, Math.max(0, (100 * (job.started_at - begun)) / span))}%`;
      part.style.width = `${Math.max(0.5, (100 * (end - job.started_at)) / span)}%`;
      part.title = `${moment(job.started_at)} to ${moment(job.ended_at) || "now"}`;
      line.append(part);
    }
    const took = job.elapsed_s ?? (job.started_at !== null && !job.is_settled ? run.ended_at - job.started_at : null);
    return jobRow(job, cell("number", jobLink(job)), cell("name", link(href(`jobs/${job.id}`), nameText(job.name))), cell("", stateBadge(job)),
      cell("why", note === job.state.toLowerCase() ? "" : note, job.exit && job.exit.text !== "0:0" ? el("span", { class: "soft" }, ` ${job.exit.text}`) : null), cell("number rare", String(job.attempt || "")),
      cell("wide-bar rare", line), cell("number", seconds(took)), cell("number rare", size(job.peak_bytes)));
  });
  const all = page.total.toLocaleString("en");
  return el("div", {}, el("p", { id: "count", class: "soft", role: "status" }, page.left_out > 0 ? `${page.jobs.length} of ${all} jobs; the others are on the next pages.` : `${count(page.total, "job")}.`),
    table(heads, rows, { id: "table" }),
    el("p", { class: "pages" }, words.after ? link(href(path, { ...words, after: "" }), "first page", { class: "" }) : null, " ",
      page.next ? link(href(path, { ...words, after: page.next }), "next page", { class: "", rel: "next" }) : null));
}

// ---- two runs --------------------------------------------------------------------------------------
export async function compareView(_, words, get) {
  const form = filterForm(words, [["first", "first run"], ["second", "second run"]]);
  const nodes = [el("h1", {}, "Compare"), form];
  if (!/^\d+$/.test(words.first || "") || !/^\d+$/.test(words.second || "")) {
    return { title: "Compare", concerns: () => false, nodes: [...nodes, el("p", { class: "none" }, "Give the numbers of two runs.")] };
  }
  const found = await get("compare", words);
  const change = (one, name, text) => {
    const [a, b] = ["first", "second"].map((run) => (one[run] === null || one[`${run}_state`] === "SKIPPED" ? "-" : text(one[`${run}_${name}`]) || "?"));
    return a.length + b.length === 2 ? "" : `${a} → ${b}`;
  };
  const state = (job, word) => (word === null ? el("span", { class: "soft" }, "not there") : el("a", { href: href(`jobs/${job}`) }, badge(word)));
  const rows = found.differences.map((one) => el("tr", { "data-key": `d-${one.name}`, ...(one.second ? { "data-row": href(`jobs/${one.second}`) } : {}) },
    cell("name", nameText(one.name)), cell("", state(one.first, one.first_state), " → ", state(one.second, one.second_state)),
    cell("number", change(one, "s", seconds)), cell("number rare", change(one, "bytes", size))));
  const head = (run) => el("p", {}, link(href(`runs/${run.id}`), `run ${run.id} ${run.name}`, { class: "" }), " ", badge(run.state), bar(run.counts));
  return {
    title: `runs ${words.first} and ${words.second}`,
    concerns: (changed) => [Number(words.first), Number(words.second)].some((run) => changed.runs.includes(run)),
    nodes: [...nodes, head(found.first), head(found.second),
      el("h2", {}, "Verdicts"), el("ul", { class: "counts" }, Object.entries(found.moves).map(([move, number]) => el("li", { class: `s-${move.split(" ")[1]}` }, el("b", {}, number.toLocaleString("en")), ` ${move.replace(" ", " → ").replaceAll("-", "not there")}`))),
      el("h2", {}, "Jobs"), el("p", { class: "soft" }, "Other verdicts first, then by the change of time."),
      table([{ text: "name" }, { text: "verdict" }, { text: "took", kind: "number" }, { text: "peak memory", kind: "number rare" }], rows), left(found.left_out, "job")],
  };
}
