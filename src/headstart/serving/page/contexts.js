// Two sentences that share a word: how alike its vectors are in each layer of each encoder.

import { post } from "./api.js";
import { bars, card, choice, element, field, output, show, soft } from "./dom.js";

export const name = "Contexts";
export const title = "One word, two contexts";
export const lead = "A word vector is the same wherever its word stands. ELMo and BERT give the word another vector in each sentence: the lower the cosine of the two, the further apart a layer holds the two uses.";

const FIRST = "They staged a play in town .";
const SECOND = "The kids play in the garden .";
const MOST = 3;
// Characters before a use; what comes after is cut by the width of the card.
const ROOM = 22;
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
  const word = element("div", { className: "inline" });
  let chosen;
  const answer = () => show(result, () => compared(models, first.value, second.value, chosen));
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

async function compared(models, first, second, word) {
  const found = await post("contexts", { first, second, ...(word ? { word } : {}) });
  const searched = models.some((one) => one.can.includes("occurrences"));
  const cards = [...found.models].sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind)).map((one) =>
    card(
      one.kind, one.model, soft(ABOUT[one.kind] ?? ""),
      bars(`${one.model}: cosine of “${found.word}” in both sentences`, one.cosines.map((cosine, layer) => [named(layer, one), cosine]), (value) => value.toFixed(2)),
      searched ? nearest(models.find((other) => other.name === one.model), found.word, [first, second]) : null,
    ));
  const heading = element("h3", { className: "asked" }, "Cosine of ", element("strong", { text: `“${found.word}”` }), " in both sentences");
  return [heading, element("div", { className: "columns" }, ...cards)];
}

// Where else the word is used as in each sentence; of word vectors, which know no uses, the nearest words.
function nearest({ name: model, can }, word, sentences) {
  const place = element("div", {});
  if (can.includes("neighbours")) {
    show(place, async () => {
      const { neighbours } = await post("neighbours", { model, word, most: 2 * MOST });
      return [element("h4", { text: "Nearest words, in both" }), element("p", { text: neighbours.map((one) => one.word).join(", ") })];
    });
  } else if (can.includes("occurrences")) {
    show(place, async () => {
      const both = await Promise.all(sentences.map((text) => post("occurrences", { model, text, word, most: MOST })));
      return both.flatMap(({ occurrences }, number) => [
        element("h4", { text: `Used as in the ${number ? "second" : "first"}` }),
        element("ul", { className: "uses" }, ...occurrences.map(use)),
      ]);
    });
  }
  return place;
}

function use({ sentence, start, end }) {
  const characters = [...sentence];
  const before = characters.slice(Math.max(0, start - ROOM), start).join("");
  return element(
    "li", { title: sentence }, start > ROOM ? before.replace(/^\S*\s/, "… ") : before,
    element("b", { text: characters.slice(start, end).join("") }), characters.slice(end).join(""),
  );
}

function named(layer, one) {
  if (one.cosines.length === 1) return "vector";
  return layer === 0 ? "input" : `layer ${layer}`;
}
