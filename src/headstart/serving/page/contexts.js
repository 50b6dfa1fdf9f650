// Two sentences that share a word: how alike its vectors are in each layer of each encoder.

import { post } from "./api.js";
import { bars, card, choice, element, field, output, show, soft } from "./dom.js";

export const name = "Contexts";
export const title = "One word, two contexts";
export const lead = "A word vector is the same wherever its word stands. ELMo and BERT give the word another vector in each sentence: the lower the cosine of the two, the further apart a layer holds the two uses.";

const FIRST = "They staged a play in town .";
const SECOND = "The kids play in the garden .";
const KINDS = ["static", "elmo", "bert"];
const ABOUT = {
  static: "One vector per word, whatever the sentence.",
  elmo: "Reads letters, then left to right and right to left.",
  bert: "Reads both sides of the word in every layer.",
};

export function draw(models) {
  if (!models.some((one) => one.can.includes("represent"))) {
    return [element("p", { text: "No encoder is served here. Start the server with one, such as bert-mini." })];
  }
  const first = element("input", { value: FIRST, required: true, name: "first", autocomplete: "off" });
  const second = element("input", { value: SECOND, required: true, name: "second", autocomplete: "off" });
  const result = output();
  const word = element("div", {});
  let chosen;
  const answer = () => show(result, () => compared(first.value, second.value, chosen));
  const offer = () => {
    const shared = sharedWords(first.value, second.value);
    if (!shared.includes(chosen)) chosen = shared.reduce((a, b) => (b.length > a.length ? b : a), shared[0]);
    word.replaceChildren(...(shared.length > 1 ? [choice("The word", "word", shared.map((one) => [one, one]), chosen, (value) => { chosen = value; answer(); })] : []));
    answer();
  };
  const form = element(
    "form", { className: "row" }, field("A sentence", first), field("Another with the same word", second),
    element("button", { text: "Compare" }),
  );
  form.addEventListener("submit", (event) => { event.preventDefault(); offer(); });
  offer();
  return [form, word, result];
}

// The server splits words as each encoder does; runs of letters and digits are words to all of them.
function sharedWords(first, second) {
  const [one, other] = [first, second].map((text) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu)));
  return [...one].filter((word) => other.has(word));
}

async function compared(first, second, word) {
  const found = await post("contexts", { first, second, ...(word ? { word } : {}) });
  const models = [...found.models].sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
  const cards = models.map((one) =>
    card(
      one.kind, one.model, soft(ABOUT[one.kind] ?? ""),
      bars(`${one.model}: cosine of “${found.word}” in both sentences`, one.cosines.map((cosine, layer) => [named(layer, one), cosine]), (value) => value.toFixed(2)),
    ));
  const heading = element("h3", { className: "asked" }, "Cosine of ", element("strong", { text: `“${found.word}”` }), " in both sentences");
  return [heading, element("div", { className: "columns" }, ...cards)];
}

function named(layer, one) {
  if (one.cosines.length === 1) return "vector";
  return layer === 0 ? "input" : `layer ${layer}`;
}
