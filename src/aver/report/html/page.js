
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { columns, words, states, groups } = data;
  const count = columns.id.length;
  const byId = new Map(columns.id.map((id, index) => [id, index]));
  const at = (id) => document.getElementById(id);
  const PAGE = 200;
// {{elements}}

  // ---- the table ---------------------------------------------------------------------------------
  const heads = [
    ["job", (i) => columns.id[i], true, ""], ["name", (i) => columns.name[i], false, ""],
    ["state", (i) => columns.state[i], false, ""], ["exit", (i) => words[columns.exit[i]], false, ""],
    ["reason", (i) => words[columns.reason[i]], false, "rare"], ["attempts", (i) => columns.attempt[i], true, "rare"],
    ["started after", (i) => columns.start[i] ?? -1, true, "rare"], ["took", (i) => columns.elapsed[i] ?? -1, true, ""],
    ["peak memory", (i) => columns.peak[i] ?? -1, true, "rare"],
  ];
  const chosen = { text: "", states: new Set(), group: null, sort: 2, down: false, first: 0 };
  let shown = [];

  function matches(index) {
    if (chosen.states.size && !chosen.states.has(columns.state[index])) return false;
    if (chosen.group !== null && columns.group[index] !== chosen.group) return false;
    if (!chosen.text) return true;
    return columns.name[index].toLowerCase().includes(chosen.text) || String(columns.id[index]) === chosen.text ||
      words[columns.reason[index]].toLowerCase().includes(chosen.text);
  }
  function choose() {
    shown = [];
    for (let index = 0; index < count; index += 1) if (matches(index)) shown.push(index);
    if (chosen.sort !== null) {
      const key = heads[chosen.sort][1];
      const sign = chosen.down ? -1 : 1;
      shown.sort((a, b) => {
        const x = key(a), y = key(b);
        return sign * (x < y ? -1 : x > y ? 1 : a - b);
      });
    }
    chosen.first = 0;
    draw();
  }
  function draw() {
    const rows = shown.slice(chosen.first, chosen.first + PAGE).map((index) => {
      const state = states[columns.state[index]];
      const cells = [
        columns.id[index], columns.name[index], badge(state, words[columns.mark[index]]), words[columns.exit[index]],
        words[columns.reason[index]], columns.attempt[index] || "", duration(columns.start[index]),
        duration(columns.elapsed[index]), bytes(columns.peak[index]),
      ];
      return make("tr", { "data-job": columns.id[index], tabindex: "0" }, ...cells.map((cell, number) =>
        make("td", { class: `${heads[number][2] ? "number" : ""} ${heads[number][3]}` }, typeof cell === "number" ? String(cell) : cell)));
    });
    at("table").tBodies[0].replaceChildren(...rows);
    at("count").textContent = shown.length === count ? `${count} jobs` : `${shown.length} of ${count} jobs`;
    const last = Math.min(chosen.first + PAGE, shown.length);
    at("place").textContent = shown.length > PAGE ? `${chosen.first + 1} to ${last} of ${shown.length}` : "";
    at("back").hidden = at("next").hidden = shown.length <= PAGE;
    at("back").disabled = chosen.first === 0;
    at("next").disabled = last >= shown.length;
    const button = at("group");
    button.hidden = chosen.group === null;
    button.textContent = chosen.group === null ? "" : `${groups[chosen.group]} ×`;
  }
  at("table").tHead.append(make("tr", {}, ...heads.map(([title, , isNumber, kind], number) => {
    const button = make("button", { type: "button" }, title);
    button.addEventListener("click", () => {
      chosen.down = chosen.sort === number && !chosen.down;
      chosen.sort = number;
      choose();
    });
    return make("th", { class: `${isNumber ? "number" : ""} ${kind}`, scope: "col" }, button);
  })));
  const counts = new Map();
  for (const state of columns.state) counts.set(state, (counts.get(state) || 0) + 1);
  for (const state of [...counts.keys()].sort((a, b) => a - b)) {
    const chip = make("button", { type: "button", class: `s-${states[state]}`, "aria-pressed": "false" }, `${states[state]} ${counts.get(state)}`);
    chip.addEventListener("click", () => {
      const isOn = chosen.states.delete(state) ? false : Boolean(chosen.states.add(state));
      chip.setAttribute("aria-pressed", String(isOn));
      choose();
    });
    at("chips").append(chip);
  }
  at("text").addEventListener("input", (event) => { chosen.text = event.target.value.trim().toLowerCase(); choose(); });
  document.querySelector("form.filter").addEventListener("submit", (event) => event.preventDefault());
  at("group").addEventListener("click", () => { chosen.group = null; choose(); });
  at("back").addEventListener("click", () => { chosen.first = Math.max(0, chosen.first - PAGE); draw(); });
  at("next").addEventListener("click", () => { chosen.first += PAGE; draw(); });

  // ---- one job -------------------------------------------------------------------------------------
  function show(id) {
    const index = byId.get(id);
    if (index === undefined) return;
    const state = states[columns.state[index]];
    const exit = words[columns.exit[index]], reason = words[columns.reason[index]], source = words[columns.source[index]];
    const parts = [
      make("h3", { id: "panel-title" }, columns.name[index]),
      make("p", {}, badge(state, words[columns.mark[index]]), ` job ${id} ${[exit, reason].filter(Boolean).join(" ")}${source ? `, attested by ${source}` : ""}`),
      data.sentences[id] ? make("p", {}, data.sentences[id]) : null,
      ...(data.warnings[id] || []).map((text) => make("p", { class: "warning" }, `Warning: ${text}`)),
    ];
    const attempts = data.attempts[id] || [];
    if (attempts.length) {
      parts.push(make("h4", {}, "Attempts"), make("table", { class: "attempts" }, ...attempts.map((one) => make("tr", {},
        make("td", {}, `#${one[0]}`), make("td", {}, badge(one[1]), ` ${one[2]} ${one[3] === "None" ? "" : one[3]}`),
        make("td", {}, [one[4], one[5], one[6]].filter(Boolean).join("; "))))));
    } else if (columns.attempt[index]) {
      parts.push(make("p", {}, `${columns.attempt[index]} attempt${columns.attempt[index] > 1 ? "s" : ""}, started after ${duration(columns.start[index]) || "?"}, took ${duration(columns.elapsed[index]) || "?"}${columns.peak[index] === null ? "" : `, peak memory ${bytes(columns.peak[index])}`}`));
    }
    parts.push(make("h4", {}, "Evidence"));
    const lines = data.evidence[id];
    if (lines) {
      parts.push(make("table", { class: "evidence" }, ...lines.map(([moment, attempt, after, who, what, said]) => make("tr", {},
        make("td", {}, clock(moment)), make("td", {}, `${attempt ? `#${attempt} ` : ""}${who}`),
        make("td", {}, what, said && said !== what ? make("pre", { class: "said" }, said) : null)))));
    } else {
      parts.push(make("p", {}, `The page holds the evidence of the jobs that did not complete. For this one: `, make("code", {}, `aver timeline ${id}`)));
    }
    const log = data.logs[id];
    if (log) parts.push(make("p", { class: "path" }, (log[1] ? "the end of " : "") + log[0]), make("pre", { class: "log" }, log[2]));
    at("panel-body").replaceChildren(...parts.filter(Boolean));
    if (!at("panel").open) at("panel").showModal();
    at("panel").scrollTop = 0;
  }
  function act(element) {
    if (element.dataset.job !== undefined) { show(Number(element.dataset.job)); return; }
    chosen.group = Number(element.dataset.group);
    choose();
    at("jobs").scrollIntoView();
  }
  document.addEventListener("click", (event) => {
    if (event.target === at("panel")) { at("panel").close(); return; }
    const element = event.target.closest("[data-job], [data-group]");
    if (element) act(element);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    const element = event.target.closest ? event.target.closest("[data-job], [data-group]") : null;
    if (element) { event.preventDefault(); act(element); }
  });
  window.addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; });
  choose();
})();
