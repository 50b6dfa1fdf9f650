// Trainings under the server's --runs folder, with curves that grow while they run, and the reports of comparisons.

import { get, post } from "./api.js";
import { element, field, output, show } from "./dom.js";

export const title = "Runs";
const SECONDS = 3;
const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BOTTOM] = [640, 240, 64, 28];

export function draw() {
  const result = output();
  show(result, listed);
  return [result];
}

async function listed() {
  const { runs, comparisons } = await get("runs");
  if (!runs.length && !comparisons.length) {
    return element("p", { text: "There are no runs here. Start the server with --runs and a folder that has some." });
  }
  const choice = element("select", { name: "run" }, ...runs.map((one) => element("option", { value: one.name, text: `${one.name} (${one.kind}, ${one.state}, step ${one.step.toLocaleString("en")})` })));
  const curves = output();
  const follow = async () => {
    const name = choice.value;
    const found = await post("curve", { run: name });
    const current = () => choice.value === name && choice.isConnected;
    if (!found.finished) setTimeout(() => { if (current()) show(curves, follow); }, 1000 * SECONDS);
    return pictures(name, found);
  };
  choice.addEventListener("change", () => show(curves, follow));
  const parts = [];
  if (runs.length) {
    parts.push(element("form", {}, field("Training", choice)), curves);
    // The choice has to be on the page before it is followed.
    setTimeout(() => show(curves, follow));
  }
  if (comparisons.length) {
    const links = comparisons.map((name) => element("li", {}, element("a", { href: `/api/report?comparison=${encodeURIComponent(name)}`, text: name })));
    parts.push(element("h3", { text: "Reports of comparisons" }), element("ul", {}, ...links));
  }
  return parts;
}

function pictures(name, { loss, evaluations }) {
  const all = [["loss", loss], ...Object.entries(evaluations)].filter(([, points]) => points.length > 1);
  if (!all.length) return element("p", { text: "Nothing is logged yet." });
  return all.map(([figure, points]) => curve(`${figure.replaceAll("_", " ")} of ${name}`, points));
}

function curve(title, points) {
  const steps = points.map(([step]) => step);
  const values = points.map(([, value]) => value);
  const [first, last, low, high] = [Math.min(...steps), Math.max(...steps), Math.min(...values), Math.max(...values)];
  const x = (step) => LEFT + ((step - first) / (last - first || 1)) * (WIDTH - LEFT - 12);
  const y = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low || 1)) * (HEIGHT - BOTTOM - 14);
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${short(values[0])} at step ${steps[0]}, ${short(values.at(-1))} at step ${steps.at(-1)}` });
  for (const value of [low, (low + high) / 2, high]) {
    svg.append(drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - 12, y1: y(value), y2: y(value) }));
    svg.append(drawn("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  }
  for (const [step, anchor] of [[first, "start"], [last, "end"]]) {
    svg.append(drawn("text", { x: x(step), y: HEIGHT - 8, "text-anchor": anchor }, `step ${step.toLocaleString("en")}`));
  }
  svg.append(drawn("polyline", { class: "curve", points: points.map(([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`).join(" ") }));
  return element("figure", {}, svg, element("figcaption", { className: "soft", text: title }));
}

function drawn(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function short(value) {
  return Math.abs(value) >= 1000 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}
