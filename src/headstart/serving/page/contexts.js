// Two sentences that share a word: how alike its vectors are in each layer of each encoder.

import { post } from "./api.js";
import { bars, element, field, output, show } from "./dom.js";

export const title = "Two contexts";
const FIRST = "They staged a play about the war .";
const SECOND = "The children play in the garden .";

export function draw(models) {
  if (!models.some((one) => one.can.includes("represent"))) {
    return [element("p", { text: "No encoder is served here. Start the server with one, such as bert-mini." })];
  }
  const first = element("input", { value: FIRST, required: true, name: "first" });
  const second = element("input", { value: SECOND, required: true, name: "second" });
  const word = element("input", { name: "word", placeholder: "the longest that both have" });
  const result = output();
  const form = element(
    "form", {}, field("A sentence", first), field("Another with the same word", second), field("The word", word),
    element("button", { text: "Compare" }),
  );
  const answer = () => show(result, () => compared(first.value, second.value, word.value.trim()));
  form.addEventListener("submit", (event) => { event.preventDefault(); answer(); });
  answer();
  return [
    element("p", { className: "soft", text: "A word vector is the same wherever the word stands. A contextual vector is not: the cosine of its two vectors says how alike the two uses look to each layer." }),
    form, result,
  ];
}

async function compared(first, second, word) {
  const found = await post("contexts", { first, second, ...(word ? { word } : {}) });
  const cards = found.models.map((one) =>
    element(
      "section", { className: "card" }, element("h3", { text: one.model }),
      bars(`Cosine of “${found.word}” in both sentences`, one.cosines.map((cosine, layer) => [named(layer, one), cosine]), (value) => value.toFixed(2)),
    ));
  return element("div", { className: "columns" }, ...cards);
}

function named(layer, one) {
  if (one.cosines.length === 1) return "word vector";
  return layer === 0 ? "words" : `layer ${layer}`;
}
