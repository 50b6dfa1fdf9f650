// Trainings under the server's --runs folder, with curves that grow while they run, and the reports of comparisons.

import { get, post } from "./api.js";
import { curve } from "./curve.js";
import { choice, element, output, show, soft } from "./dom.js";

export const name = "Runs";
export const title = "Trainings and comparisons";
export const lead = "The loss and the evaluations of each training, read from its log; a running one is followed as it goes.";

const MILLISECONDS = 3000;
// What an evaluation was made of, no result of it.
const COUNTS = ["units"];
const ORDER = ["running", "finished", "stopped"];

export function draw() {
  const result = element("div", {});
  show(result, listed);
  return [result];
}

async function listed() {
  let { runs, comparisons } = await get("runs");
  if (!runs.length && !comparisons.length) {
    return element("p", { text: "There are no runs here. Start the server with --runs and a folder that has some." });
  }
  const list = element("div", { className: "list" });
  const curves = element("div", { className: "curves" });
  const ordered = () => [...runs].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  let chosen = ordered()[0]?.name;
  const drawCurves = () => show(curves, () => pictures(runs.find((one) => one.name === chosen)));
  const drawList = () => {
    const options = ordered().map((one) => [one.name, described(one)]);
    const held = list.contains(document.activeElement);
    list.replaceChildren(choice("Training", "run", options, chosen, (name) => { chosen = name; drawCurves(); }));
    if (held) list.querySelector(":checked")?.focus();
  };
  const follow = async () => {
    if (!list.isConnected) return;
    const before = JSON.stringify(runs);
    // A server that is restarted is asked again.
    if (!document.hidden) ({ runs } = await get("runs").catch(() => ({ runs })));
    if (JSON.stringify(runs) !== before && list.isConnected) {
      if (!runs.some((one) => one.name === chosen)) chosen = ordered()[0]?.name;
      drawList();
      drawCurves();
    }
    setTimeout(follow, MILLISECONDS);
  };
  if (runs.length) {
    drawList();
    drawCurves();
    setTimeout(follow, MILLISECONDS);
  }
  return element("div", { className: "runs" }, element("div", {}, list, reports(comparisons)), curves);
}

function described({ name, kind, state, step }) {
  const facts = [kind, step ? `step ${step.toLocaleString("en")}` : ""].filter(Boolean).join(", ");
  return element("span", {}, element("b", { text: name }), element("small", { className: `state ${state}`, text: state }), element("small", { text: facts }));
}

function reports(comparisons) {
  if (!comparisons.length) return null;
  const links = comparisons.map((name) => element("li", {}, element("a", { href: `/api/report?comparison=${encodeURIComponent(name)}`, text: name })));
  return element("section", {}, element("h3", { text: "Reports of comparisons" }), element("ul", {}, ...links));
}

async function pictures(run) {
  if (!run) return soft("There are no trainings any more.");
  const { name, kind } = run;
  const { loss, evaluations } = await post("curve", { run: name });
  const figures = Object.entries(evaluations).filter(([figure]) => !COUNTS.includes(figure));
  const all = [["training loss", loss], ...figures].filter(([, points]) => points.length > 1);
  if (!all.length) return soft("There is nothing to draw yet: a curve begins with the second entry of the log.");
  return all.map(([figure, points]) => curve(figure.replaceAll("_", " "), name, points, kind));
}
