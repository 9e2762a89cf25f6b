// The keyboard: / filters, j and k choose a row, enter opens it, n and r are the views, ? lists the keys.
import { el } from "./parts.js";
import { ask } from "./actions.js";

const KEYS = [["/", "filter, or search in the log"], ["j, k", "next or previous row"], ["enter", "open the chosen row"], ["n", "now"], ["r", "runs"], ["f", "follow the log"], ["?", "this list"], ["escape", "close"]];

export function showKeys() {
  return ask("Keys", [el("table", {}, KEYS.map(([key, what]) => el("tr", {}, el("td", {}, el("kbd", {}, key)), el("td", {}, what))))], null, "");
}
function choose(step) {
  const rows = [...document.querySelectorAll("tr[data-row]")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  next.querySelector("a")?.focus();
  next.scrollIntoView({ block: "nearest" });
}
export function listenToKeys() {
  document.getElementById("help").addEventListener("click", showKeys);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    switch (event.key) {
      case "/": document.querySelector("[data-filter-field], .log-tools input[type=search]")?.focus(); break;
      case "j": choose(1); break;
      case "k": choose(-1); break;
      case "n": location.hash = "#/now"; break;
      case "r": location.hash = "#/runs"; break;
      case "f": document.querySelector("[data-follow]")?.click(); break;
      case "?": showKeys(); break;
      default: return;
    }
    event.preventDefault();
  });
}
