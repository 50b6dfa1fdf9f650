// One word of a sentence hidden: what BERT expects in its place, and what ELMo expects from either side.

import { post } from "./api.js";
import { bars, element, field, output, show } from "./dom.js";

export const title = "Hidden words";
const SENTENCE = "The film was long but very funny .";

export function draw(models) {
  const able = models.filter((one) => one.can.includes("fill") || one.can.includes("next"));
  if (!able.length) {
    return [element("p", { text: "No language model is served here. Start the server with bert-mini or elmo-mini." })];
  }
  const sentence = element("input", { value: SENTENCE, required: true, name: "sentence" });
  const words = element("div", { className: "words", role: "group", "aria-label": "Words to hide" });
  const result = output();
  const form = element("form", {}, field("A sentence", sentence), element("button", { text: "Take this sentence" }));
  const take = () => {
    const split = sentence.value.trim().split(/\s+/).filter(Boolean);
    words.replaceChildren(...split.map((text, place) => {
      const button = element("button", { type: "button", className: "word", "aria-pressed": "false", text });
      button.addEventListener("click", () => {
        for (const other of words.children) other.setAttribute("aria-pressed", String(other === button));
        show(result, () => guessed(able, split, place));
      });
      return button;
    }));
    result.replaceChildren(element("p", { className: "soft", text: "Choose a word to hide it." }));
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); take(); });
  take();
  return [form, words, result];
}

async function guessed(able, split, place) {
  const before = split.slice(0, place).join(" ");
  const after = split.slice(place + 1).join(" ");
  const asked = [];
  for (const { name: model, can } of able) {
    if (can.includes("fill")) {
      asked.push([model, "reads both sides", "fill", { model, text: [before, "[MASK]", after].filter(Boolean).join(" ") }]);
    }
    if (can.includes("next")) {
      if (before) asked.push([model, "reads forward, from the left", "next", { model, text: before }]);
      if (after) asked.push([model, "reads backward, from the right", "next", { model, text: after, backward: true }]);
    }
  }
  const cards = await Promise.all(asked.map(async ([model, how, path, body]) => {
    const [guesses] = (await post(path, body)).guesses;
    return element(
      "section", { className: "card" }, element("h3", { text: `${model}: ${how}` }),
      bars(`Instead of “${split[place]}”`, guesses.map((one) => [one.word, one.probability])),
    );
  }));
  return element("div", { className: "columns" }, ...cards);
}
