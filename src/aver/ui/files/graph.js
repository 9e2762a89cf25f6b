// Pictures as SVG: the graph of a run's groups, where the server says where each node stands, and values over time.
import { WORST_FIRST, clean, clock, el, href } from "./parts.js";

const SVG = "http://www.w3.org/2000/svg";
function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter(Boolean));
  return made;
}
const short = (text) => (text.length <= 22 ? text : `${text.slice(0, 21)}…`);

export function drawGraph(run, graph) {
  const { node_width: width, node_height: height } = graph;
  const marker = shape("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, shape("path", { d: "M0 0 L8 4 L0 8 z" }));
  const edges = graph.edges.map((edge) => {
    const a = graph.nodes[edge.source], b = graph.nodes[edge.target];
    const x1 = a.x + width / 2, y1 = a.y + height, x2 = b.x + width / 2, y2 = b.y, bend = Math.max((y2 - y1) / 2, 12);
    const title = edge.label ? shape("title", {}, clean(edge.label)) : null;
    return shape("path", { ...(edge.is_alternative ? { class: "alternative" } : {}), d: `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2 - 1}`, "marker-end": "url(#arrow)" }, title);
  });
  const nodes = graph.nodes.map((node) => {
    const states = WORST_FIRST.filter((state) => node.counts[state]);
    const total = states.reduce((sum, state) => sum + node.counts[state], 0);
    const words = states.map((state) => `${node.counts[state]} ${state}`).join(", ") || "no jobs";
    const to = node.job !== null ? href(`jobs/${node.job}`) : node.spec !== null ? href(`runs/${run}`, { group: `${node.first_job}.${node.spec}` }) : href(`runs/${run}`);
    let left = node.x + 7;
    const parts = states.map((state) => {
      const part = (node.counts[state] / total) * (width - 14);
      const made = shape("rect", { class: `part s-${state}`, x: left, y: node.y + height - 7, width: Math.max(part, 1), height: 4 });
      left += part;
      return made;
    });
    return shape("a", { href: to, class: `node s-${states[0] || "PENDING"}`, "aria-label": `${clean(node.label)}: ${words}` },
      shape("title", {}, `${clean(node.label)}: ${words}`),
      shape("rect", { class: "box", x: node.x, y: node.y, width, height, rx: 7 }),
      shape("text", { x: node.x + 10, y: node.y + 18 }, short(clean(node.label))),
      shape("text", { class: "small", x: node.x + 10, y: node.y + 33 }, short(words)), ...parts);
  });
  const picture = shape("svg", { class: "graph", viewBox: `0 0 ${graph.width} ${graph.height}`, width: graph.width, height: graph.height, role: "group", "aria-label": "Graph of the jobs" },
    shape("defs", {}, marker), ...edges, ...nodes);
  return el("div", { class: "wide" }, graph.is_grouped ? el("p", { class: "none" }, "The flow has too many jobs for one picture: alike ones are one node.") : null, picture);
}

// One value over time against its limit, or else against its highest point. `points` are [time, value or null].
const [WIDTH, HEIGHT] = [560, 90];
export function drawCurve(what, points, limit, words) {
  const known = points.filter(([, value]) => value !== null);
  if (!known.length) return null;
  const begin = points[0][0], span = Math.max(1, points.at(-1)[0] - begin);
  const highest = Math.max(...known.map(([, value]) => value));
  const most = Math.max(limit || 0, highest) || 1;
  const x = (at) => ((WIDTH * (at - begin)) / span).toFixed(1), y = (value) => (HEIGHT - (HEIGHT * value) / most).toFixed(1);
  const said = `${what} over time: up to ${words(highest)}${limit ? ` of ${words(limit)}` : ", no limit"}`;
  const line = known.length > 1 ? shape("polyline", { points: known.map(([at, value]) => `${x(at)},${y(value)}`).join(" ") }) : shape("circle", { cx: x(known[0][0]), cy: y(known[0][1]), r: 2 });
  return el("figure", { class: "over-time" }, el("figcaption", {}, said),
    shape("svg", { class: "curve", viewBox: `-1 -2 ${WIDTH + 2} ${HEIGHT + 18}`, width: WIDTH + 2, height: HEIGHT + 18, role: "img", "aria-label": said },
      limit ? shape("path", { class: "limit", d: `M0 ${y(limit)}H${WIDTH}` }) : null, shape("path", { class: "axis", d: `M0 ${HEIGHT}H${WIDTH}` }), line,
      shape("text", { x: 0, y: HEIGHT + 14 }, clock(begin).slice(0, 8)), shape("text", { x: WIDTH, y: HEIGHT + 14, "text-anchor": "end" }, clock(points.at(-1)[0]).slice(0, 8))));
}
