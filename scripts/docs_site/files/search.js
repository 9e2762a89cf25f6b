// The search: every word that was typed must stand in a section, anywhere in a word, so Chinese needs no word breaks.
// The sections come as a script, so that the search also works from a folder, and only once somebody searches.
const script = document.currentScript;
const { top: toTop, nothing } = script.dataset;
const input = document.querySelector(".search input");
const list = document.querySelector(".search ol");
const MOST = 12;
const AROUND = 60; // characters before a word that was found
const USERS = /^(en|zh)\//; // pages for users; the others are on design, or the changelog
const WEIGHT = { title: 8, heading: 20, start: 10, text: 1 };

input.hidden = false;
input.addEventListener("focus", load, { once: true });
input.addEventListener("input", show);
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { input.value = ""; show(); }
  else if (event.key === "Enter") list.querySelector("a")?.click();
  else if (event.key === "ArrowDown") { event.preventDefault(); list.querySelector("a")?.focus(); }
});
list.addEventListener("keydown", (event) => {
  const links = [...list.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "ArrowDown") { event.preventDefault(); links[at + 1]?.focus(); }
  else if (event.key === "ArrowUp") { event.preventDefault(); (links[at - 1] ?? input).focus(); }
  else if (event.key === "Escape") { input.focus(); input.value = ""; show(); }
});
document.addEventListener("click", (event) => { if (!event.target.closest(".search")) list.hidden = true; });
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); input.focus(); }
});

function load() {
  const sections = document.createElement("script");
  sections.src = `${toTop}search-${document.documentElement.lang}.js`;
  sections.addEventListener("load", show);
  document.head.append(sections);
}

function show() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  list.hidden = words.length === 0 || !window.searchSections;
  if (list.hidden) return;
  const found = window.searchSections
    .map((section) => ({ section, score: score(section, words) }))
    .filter((one) => one.score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, MOST);
  list.replaceChildren(...(found.length ? found.map((one) => item(one.section, words)) : [element("li", nothing)]));
}

function score([place, title, heading, text], words) {
  let sum = 0;
  const [inTitle, inHeading, inText] = [title, heading, text].map((one) => one.toLowerCase());
  for (const word of words) {
    const here = (inTitle.includes(word) && WEIGHT.title) + (inHeading.includes(word) && WEIGHT.heading)
      + (inHeading.startsWith(word) && WEIGHT.start) + Math.min(5, inText.split(word).length - 1) * WEIGHT.text;
    if (!here) return 0;
    sum += here;
  }
  return USERS.test(place) ? sum : sum / 4;
}

function item([place, title, heading, text], words) {
  const link = element("a");
  link.href = toTop + place;
  link.append(element("b", heading && heading !== title ? `${title} › ${heading}` : title), excerpt(text, words));
  const line = element("li");
  line.append(link);
  return line;
}

function excerpt(text, words) {
  const at = Math.min(...words.map((word) => text.toLowerCase().indexOf(word)).filter((place) => place >= 0), text.length);
  const from = at === text.length ? 0 : Math.max(0, at - AROUND);
  const line = element("span", from ? "…" : "");
  const wanted = new RegExp(`(${words.map((word) => word.replace(/[^\p{L}\p{N}]/gu, "\\$&")).join("|")})`, "iu");
  text.slice(from, from + 3 * AROUND).split(wanted)
    .forEach((part, number) => line.append(number % 2 ? element("mark", part) : part));
  return line;
}

function element(name, text = "") {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
