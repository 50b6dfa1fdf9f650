// A transferred model: type what it asks for, see its answer drawn as its task draws it.

import { post } from "./api.js";
import { bars, element, field, output, show } from "./dom.js";

export const title = "Tasks";
const EXAMPLES = {
  classify: { text: "A warm , funny , engaging film ." },
  tag: { text: "Angela Merkel flew from Berlin to Rome ." },
  pair: { first: "A man sleeps on a bench .", second: "Nobody is awake ." },
  qa: { question: "Who signed it?", context: "The treaty was written in Rome. Ada Moss signed it in 1957, two days after the others." },
  srl: { text: "Ada sold her house to a friend last year ." },
  coref: { text: "Ada met Eve when she was in Rome. It was her first visit." },
};
const TONES = 6;
const LONG = ["text", "context"];

export function draw(models) {
  const runs = models.filter((one) => one.can.includes("predict"));
  if (!runs.length) {
    return [element("p", { text: "No task model is served here. Start the server with a run of headstart transfer." })];
  }
  const choice = element("select", { name: "model" }, ...runs.map((one) => element("option", { value: one.name, text: `${one.name}: ${one.title}` })));
  const fields = element("div", { className: "fields" });
  const result = output();
  const form = element("form", {}, field("Model", choice), fields, element("button", { text: "Answer" }));
  const chosen = () => runs.find((one) => one.name === choice.value);
  const fill = () => {
    const example = EXAMPLES[chosen().task] ?? {};
    fields.replaceChildren(...chosen().asks.map((name) => {
      const input = element(LONG.includes(name) ? "textarea" : "input", { name, required: true });
      input.value = example[name] ?? "";
      return field(name, input);
    }));
    result.replaceChildren();
  };
  choice.addEventListener("change", fill);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = Object.fromEntries(chosen().asks.map((name) => [name, form.elements[name].value]));
    show(result, () => answered(chosen(), given));
  });
  fill();
  return [form, result];
}

async function answered(model, given) {
  const { answers, truncated } = await post("predict", { model: model.name, inputs: [given] });
  const draw = DRAWN[model.task] ?? ((answer) => element("pre", { text: JSON.stringify(answer, null, 1) }));
  const drawn = answers[0].flatMap((answer) => draw(answer, given));
  if (truncated) drawn.push(element("p", { className: "soft", text: "The text is longer than the model reads; a part of it was left out." }));
  return drawn;
}

const DRAWN = {
  classify: probabilities,
  pair: probabilities,
  tag: (answer) => marked(answer.text, (answer.entities ?? []).map((one) => [one.start, one.end, one.type])),
  srl: (answer) => answer.predicates.length
    ? answer.predicates.map((one) => marked(answer.text, one.arguments.map((argument) => [argument.start, argument.end, argument.role])))
    : element("p", { text: "No predicate was found." }),
  qa: (answer, given) => answer.answer
    ? [element("p", {}, element("strong", { text: answer.answer }), ` (${(100 * answer.probability).toFixed(1)} %)`), marked(given.context, [[answer.start, answer.end, "answer"]])]
    : element("p", { text: "No answer stands in the context." }),
  coref: (answer) => marked(answer.text, answer.mentions.flatMap((chain, number) => chain.map((one) => [one.start, one.end, String(number + 1), number]))),
};

function probabilities(answer) {
  const sorted = Object.entries(answer.probabilities).sort((a, b) => b[1] - a[1]);
  return [element("p", {}, element("strong", { text: answer.label })), bars("Probability of each label", sorted)];
}

// A text with spans [start, end, name, number of a colour] in marks; a span may hold others, and two never cross.
// Without such a number, spans of one name have one colour.
function marked(text, spans) {
  const names = [...new Set(spans.map((span) => span[2]))];
  const tone = ([, , name, number = names.indexOf(name)]) => `tone-${1 + (number % TONES)}`;
  const characters = [...text];
  const ordered = [...spans].sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const inside = (first, end, from) => {
    const parts = [];
    let at = first;
    for (let number = from; number < ordered.length; number += 1) {
      const [start, stop, name] = ordered[number];
      if (start < at || stop > end) continue;
      parts.push(characters.slice(at, start).join(""));
      parts.push(element("mark", { className: tone(ordered[number]) }, ...inside(start, stop, number + 1), element("small", { text: name })));
      at = stop;
    }
    parts.push(characters.slice(at, end).join(""));
    return parts;
  };
  return element("p", { className: "said" }, ...inside(0, characters.length, 0));
}
