// One job: its verdict and evidence, attempts, steps, output, and what it was given.
import { badge, cell, clean, clock, count, el, facts, get, href, link, moment, seconds, shell, size, stateBadge, table } from "./parts.js";
import { actionButtons, commandList } from "./actions.js";
import { drawCurve } from "./graph.js";
import { logViewer } from "./log.js";

export async function jobView(number, words, ask) {
  const view = await ask(`jobs/${number}`);
  const { shown, why } = view;
  const { job } = shown;
  const attempt = Number(words.attempt) || job.attempt;
  const verdict = [job.exit && job.exit.text, job.reason].filter(Boolean).join(" ");
  return {
    title: `${clean(job.name)}: ${job.state}`,
    isMoving: !job.is_settled,
    concerns: (change) => change.jobs.includes(number) || change.runs.includes(job.run),
    nodes: [
      el("p", { class: "soft" }, link(href(`runs/${job.run}`), `run ${job.run}`, { class: "" })),
      el("h1", {}, el("small", {}, `job ${job.id}`), ` ${clean(job.name)} `, stateBadge(job)),
      el("p", { id: "sentence" }, el("b", {}, shown.sentence)),
      job.verified === false && job.is_settled ? el("p", { class: "soft" }, "* believed, and not verified: no witness attests it.") : null,
      job.warnings.map((text) => el("p", { class: "warning" }, `Warning: ${text}`)),
      view.hint ? el("p", {}, el("span", { class: "soft" }, "hint, from its output: "), el("a", { href: href(`jobs/${number}`, { ...words, find: view.hint }) }, view.hint)) : null,
      actionButtons({ job: number, state: job.state, isSettled: job.is_settled, reason: job.reason }),
      commandList(why.next),
      facts([[job.is_settled ? "verdict" : "state", `${job.state} ${verdict}`], ["attested by", job.source], ["attempts", String(job.attempt)], ["took", seconds(job.elapsed_s)],
        ["peak memory", size(job.peak_bytes)], ["memory now", view.use ? `${size(view.use.memory_now_bytes)}${view.use.mem_bytes === null ? "" : ` of ${size(view.use.mem_bytes)}`}` : job.state === "RUNNING" ? "not known" : ""],
        ["CPUs now", view.use && view.use.cpus_now !== null ? `${view.use.cpus_now.toFixed(1)} of ${view.use.cpus}` : job.state === "RUNNING" ? "not known" : ""],
        ["submitted", moment(job.submitted_at)], ["started", moment(job.started_at)], ["ended", moment(job.ended_at)],
        ["asked for", [count(shown.asked.cpus, "CPU"), shown.asked.gpus ? count(shown.asked.gpus, "GPU") : "", shown.asked.mem_bytes ? size(shown.asked.mem_bytes) : "no memory limit", shown.asked.time_s ? seconds(shown.asked.time_s) : "no time limit"].filter(Boolean).join(", "), "long"],
        ["needs", shown.asked.needs.join(", "), "long"], ["needed by", view.dependents === null ? "not looked for: the flow is large" : view.dependents.join(", "), "long"]]),
      el("section", { id: "log", "data-key": `log-${number}-${attempt}-${words.stream || "stdout"}` }, el("h2", {}, "Output"),
        job.attempt ? logViewer(number, job, words, attempt, shown.attempts) : el("p", { class: "none" }, "It has not started: there is no output yet.")),
      job.attempt ? el("section", { id: "over-time", "data-key": "over-time" }, el("h2", {}, "Memory and CPUs over time"), overTime(shown, attempt)) : null,
      el("section", { id: "evidence", "data-key": "evidence" }, el("h2", {}, "Evidence"), evidence(why.timeline)),
      shown.attempts.length ? el("section", { id: "attempts", "data-key": "attempts" }, el("h2", {}, "Attempts"), attemptTable(number, shown.attempts)) : null,
      shown.steps.length ? el("section", { id: "steps", "data-key": "steps" }, el("h2", {}, "Steps"), shown.steps.map(stepBox)) : null,
      el("section", { id: "given", "data-key": "given" }, el("h2", {}, "What it was given"), el("pre", { class: "log" }, shell(shown.command)),
        facts([["folder", shown.folder, "long"], ["by", `${shown.user} on ${shown.host}`], ["typed", shell(shown.typed), "long"], ["masked variables", shown.secrets.join(", ")]]),
        el("h3", {}, "Reproduce"), el("p", { class: "commands" }, el("code", {}, view.reproduce), " ", el("button", { type: "button", class: "copy", "data-copy": view.reproduce }, "copy")),
        el("details", { "data-key": "env", "data-keep": "", "data-environment": number }, el("summary", {}, "Environment (secrets masked)"), el("pre", { class: "log" }, "…"))),
    ],
    after: (main) => {
      const details = main.querySelector("[data-environment]");
      if (details && !details.dataset.heard) {
        details.dataset.heard = "yes";
        details.addEventListener("toggle", async () => {
          if (!details.open || details.dataset.read) return;
          details.dataset.read = "yes";
          const place = details.querySelector("pre");
          try { place.textContent = (await get(`jobs/${number}/environment`)).variables.map(([name, value]) => clean(`${name}=${value}`)).join("\n"); } catch (error) { place.textContent = error.message; }
        });
      }
    },
  };
}
function overTime(shown, number) {
  const use = shown.use.find((one) => one.attempt === number), facts_ = shown.attempts.find((one) => one.attempt === number);
  if (!use || !facts_) return el("p", { class: "none" }, "Not measured. Aver measures jobs that run on this machine for more than five seconds, while a coordinator runs; not jobs of a cluster, and not those in docker.");
  return el("div", { class: "curves" },
    drawCurve("Memory", use.points.map((one) => [one.at, one.memory_bytes]), facts_.mem_bytes, size),
    drawCurve("CPUs", use.points.map((one) => [one.at, one.cpus]), facts_.cpus, (value) => Number(value).toFixed(1)));
}
function evidence(lines) {
  return el("table", { class: "evidence" }, el("tbody", {}, lines.map((one, at) => el("tr", { "data-key": `e-${at}` }, cell("", clock(one.at)), cell("", `${one.attempt ? `#${one.attempt} ` : ""}${one.source}`),
    cell("", one.what, one.said && one.said !== one.what ? el("details", {}, el("summary", { class: "soft" }, "its own words"), el("pre", { class: "said" }, one.said)) : null)))));
}
function attemptTable(number, attempts) {
  return table([{ text: "attempt", kind: "number" }, { text: "verdict" }, { text: "took", kind: "number" }, { text: "CPU time", kind: "number rare" }, { text: "peak memory", kind: "number" }, { text: "limit", kind: "number rare" }, { text: "where", kind: "rare" }],
    attempts.map((one) => el("tr", { "data-key": `a-${one.attempt}` }, cell("number", link(href(`jobs/${number}`, { attempt: one.attempt }), `#${one.attempt}`, { class: "" })),
      cell("", badge(one.state, one.verified === false && one.ended_at !== null && one.state !== "UNVERIFIED" ? "*" : ""), ` ${[one.exit && one.exit.text, one.reason].filter(Boolean).join(" ")}`),
      cell("number", seconds(one.elapsed_s)), cell("number rare", one.user_s === null || one.sys_s === null ? "" : seconds(one.user_s + one.sys_s)), cell("number", size(one.peak_bytes)),
      cell("number rare", one.mem_bytes === null ? "" : size(one.mem_bytes)), cell("rare", `${one.node || ""} ${one.engine}`))));
}
function stepBox(step) {
  return el("details", { "data-key": `s-${step.attempt}-${step.step}` }, el("summary", {}, badge(step.state), ` ${step.address} ${clean(step.name)}, ${count(step.tasks, "task")} ${step.exit ? step.exit.text : ""}`),
    el("p", {}, el("code", {}, shell(step.command))), step.summary ? el("p", { class: "lines" }, step.summary) : null,
    table([{ text: "task", kind: "number" }, { text: "verdict" }, { text: "took", kind: "number" }, { text: "peak memory", kind: "number" }], step.task_ends.slice(0, 200).map((task) => el("tr", {},
      cell("number", String(task.task)), cell("", badge(task.state), ` ${task.exit ? task.exit.text : ""} ${task.because ? "killed because of another task" : ""}`), cell("number", seconds(task.elapsed_s)), cell("number", size(task.peak_bytes))))),
    step.task_ends.length > 200 ? el("p", { class: "none" }, `${step.task_ends.length - 200} more tasks, not shown here.`) : null);
}
