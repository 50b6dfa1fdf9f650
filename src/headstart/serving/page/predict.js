// One word of a sentence hidden: what BERT expects in its place, and what ELMo expects from either side.

import { post } from "./api.js";
import { bars, card, element, field, output, show, soft } from "./dom.js";

export const name = "Predict";
export const title = "Guess the hidden word";
export const lead = "Choose a word to hide it. BERT sees the words on both sides of the gap; ELMo guesses twice, once from the words before it and once from those after.";

const SENTENCE = "She opened the door and walked into the room .";
const HIDDEN = 3;
const MOST = 8;
const GAP = "▁▁▁";
const SYMBOLS = { "<UNK>": "(a rare word)", "<S>": "(the beginning)", "</S>": "(the end)" };

export function draw(models) {
  const able = models.filter((one) => one.can.includes("fill") || one.can.includes("next"));
  if (!able.length) {
    return [element("p", { text: "No language model is served here. Start the server with bert-mini or elmo-mini." })];
  }
  const sentence = element("input", { value: SENTENCE, required: true, name: "sentence", autocomplete: "off" });
  const words = element("div", { className: "words", role: "group", "aria-label": "Words to hide" });
  const result = output();
  const form = element("form", { className: "row" }, field("A sentence", sentence), element("button", { text: "Use it" }));
  const take = () => {
    const split = sentence.value.trim().split(/\s+/).filter(Boolean);
    const hide = (place) => {
      [...words.children].forEach((button, number) => button.setAttribute("aria-pressed", String(number === place)));
      show(result, () => guessed(able, split, place));
    };
    words.replaceChildren(...split.map((text, place) => {
      const button = element("button", { type: "button", className: "word", "aria-pressed": "false", text });
      button.addEventListener("click", () => hide(place));
      return button;
    }));
    if (sentence.value === SENTENCE) hide(HIDDEN);
    else show(result, () => soft("Choose a word to hide it."));
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); take(); });
  take();
  return [form, words, result];
}

// What each model is asked: its title, what it sees, and the request, or null where that is nothing.
function questions(able, before, after) {
  const found = [];
  for (const { name: model, can } of able) {
    if (can.includes("fill")) {
      found.push(["bert", `${model}: both sides`, [before, after], ["fill", { model, most: MOST, text: [before, "[MASK]", after].filter(Boolean).join(" ") }]]);
    }
  }
  for (const { name: model, can } of able) {
    if (can.includes("next")) {
      found.push(["elmo", `${model}: forward`, [before, ""], before ? ["next", { model, most: MOST, text: before }] : null]);
      found.push(["elmo", `${model}: backward`, ["", after], after ? ["next", { model, most: MOST, text: after, backward: true }] : null]);
    }
  }
  return found;
}

async function guessed(able, split, place) {
  const [before, after] = [split.slice(0, place).join(" "), split.slice(place + 1).join(" ")];
  const cards = await Promise.all(questions(able, before, after).map(async ([kind, title, [left, right], request]) => {
    if (!request) return card(kind, title, soft("No word stands on that side."));
    const seen = element("p", { className: "seen" }, left, " ", element("b", { text: GAP, "aria-label": "gap", role: "img" }), " ", right);
    const [guesses] = (await post(...request)).guesses;
    return card(kind, title, seen, bars(`${title}, instead of “${split[place]}”`, guesses.map((one) => [SYMBOLS[one.word] ?? one.word, one.probability])));
  }));
  return element("div", { className: "columns" }, ...cards);
}
