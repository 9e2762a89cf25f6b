// Submit a flow by dropping its file: it is checked first, and mistakes are shown at their lines.
import { NoAnswer, count, el, href, post, say, session } from "./parts.js";

export async function submitView() {
  if (session.is_read_only) return { title: "Submit", concerns: () => false, nodes: [el("h1", {}, "Submit"), el("p", { class: "none" }, "This page is read-only.")] };
  const root = el("div", { "data-keep": "", "data-key": "submit" });
  draw(root, session.folder);
  return { title: "Submit", concerns: () => false, nodes: [el("h1", {}, "Submit a flow"), root] };
}
function draw(root, folder) {
  const input = el("input", { type: "file", accept: ".yaml,.yml,.json", id: "file", "aria-label": "Flow" });
  const where = el("input", { name: "folder", value: folder, required: "", "aria-label": "Folder in which its jobs start" });
  const drop = el("div", { class: "drop" }, el("p", {}, "Drop a flow (.yaml, .yml, .json) here, or choose one: "), input);
  const result = el("div", { id: "checked", role: "status" });
  root.replaceChildren(el("div", { class: "form" }, drop, el("label", {}, "folder in which its jobs start", where)), result);
  let newest = null;
  const take = async (file) => {
    if (!file) return;
    newest = file;
    try {
      const flow = { name: file.name, text: await file.text() };
      const checked = await post("check", { ...flow, folder: where.value });
      if (newest === file) show(result, flow, checked, where);
    } catch (error) { if (newest === file) result.replaceChildren(el("p", { class: "problem" }, error.message)); }
  };
  input.addEventListener("change", async () => { await take(input.files[0]); input.value = ""; });  // the same file may be chosen again
  for (const name of ["dragover", "dragenter"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); take(event.dataTransfer.files[0]); });
}
function show(place, file, checked, where) {
  const lines = file.text.split("\n");
  if (checked.mistakes.length) {
    place.replaceChildren(el("h2", {}, `${file.name}: ${count(checked.mistakes.length, "mistake")}`), ...checked.mistakes.map((one) => el("div", { class: "mistake" },
      el("b", {}, one.line === null ? "" : `line ${one.line}${one.column ? `, column ${one.column}` : ""}: `), one.text, one.hint ? `; ${one.hint}` : "",
      one.line !== null && lines[one.line - 1] !== undefined ? el("pre", {}, `${one.line}  ${lines[one.line - 1]}`) : null)));
    return;
  }
  const key = [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");  // submitted again, it is the same run
  const button = el("button", { type: "button", id: "go" }, `Submit ${checked.name}`);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const done = await post("submit", { ...file, folder: where.value, key });
      say(`submitted as run ${done.run}`);
      location.hash = href(`runs/${done.run}`);
    } catch (error) { say(error instanceof NoAnswer ? `${error.message}: it may have been done; submit it again, and it runs once` : error.message); button.disabled = false; }
  });
  place.replaceChildren(el("h2", {}, `${file.name}: no mistakes`), el("p", {}, `${checked.name} has ${count(checked.jobs, "job")}. They run as you, in the folder above.`), button);
}
