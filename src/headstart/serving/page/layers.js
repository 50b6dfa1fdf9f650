// What stands in the layers: where each head of a BERT looks, and which layers each task reads.

import { attentionOver } from "./attention.js";
import { get } from "./api.js";
import { element, output, percent, show, soft } from "./dom.js";

export const name = "Layers";
export const title = "Inside the layers";
export const lead = "In each layer, every head of BERT makes a word's new vector from the words that it attends to. A task then reads a mix of the layers, in shares that it learned from its labels.";

export function draw(models) {
  const berts = models.filter((one) => one.can.includes("attention"));
  const mixes = output();
  const attention = berts.length ? attentionOver(berts) : [soft("No BERT is served here. Start the server with one, such as bert-mini.")];
  show(mixes, learned);
  return [element(
    "div", { className: "looked" },
    element("section", { className: "card" }, element("h3", { text: "Attention" }), ...attention),
    element("section", { className: "card" }, element("h3", { text: "What each task reads" }), mixes),
  )];
}

async function learned() {
  const { mixes } = await get("layers");
  if (!mixes.length) return soft("No task model is served here. Start the server with runs of headstart transfer --how frozen.");
  const weighed = mixes.filter((one) => one.weights?.length > 1);
  const encoders = [...new Set(weighed.map(encoderOf))];
  const tables = encoders.map((encoder) => table(weighed.filter((one) => encoderOf(one) === encoder)));
  const others = mixes.filter((one) => !weighed.includes(one)).map((one) =>
    element("li", {}, element("b", { text: nameOf(one) }), ` (${one.encoder}, ${HOW[one.how] ?? one.how}) ${one.note || "reads vectors of one layer"}`));
  return [...tables, ...(others.length ? [element("ul", { className: "plain" }, ...others)] : [])];
}

const HOW = { frozen: "frozen", finetune: "fine-tuned", gradual: "fine-tuned gradually" };

// Two of a name may have other layers, where a run does not tell what it was made from.
function encoderOf({ encoder, weights }) {
  return `${encoder}, ${weights.length}`;
}

function nameOf({ model, place }) {
  return place === "output" ? `${model}, beside its network` : model;
}

// Tasks in rows, layers in columns; of one encoder.
function table(rows) {
  const { encoder, kind, weights } = rows[0];
  const most = Math.max(...rows.flatMap((one) => one.weights));
  const head = weights.map((_, layer) => element("th", { scope: "col", text: layer ? String(layer) : "input" }));
  const body = rows.map((one) => element("tr", {}, element("th", { scope: "row", text: nameOf(one) }), ...one.weights.map((weight) => column(weight, most))));
  return element(
    "table", { className: `mixes ${kind}` }, element("caption", { text: `Share of each layer of ${encoder} (equal shares: ${percent(1 / weights.length)})` }),
    element("thead", {}, element("tr", {}, element("td", {}), ...head)), element("tbody", {}, ...body),
  );
}

function column(weight, most) {
  const bar = element("span", {});
  bar.style.height = `${(100 * weight) / most}%`;
  return element("td", {}, element("div", { "aria-hidden": "true" }, bar), percent(weight));
}
