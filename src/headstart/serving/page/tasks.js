// A transferred model: type what it asks for, see its answer drawn as its task draws it.

import { post } from "./api.js";
import { bars, choice, element, field, output, show, soft } from "./dom.js";
import { marked } from "./marks.js";

export const name = "Tasks";
export const title = "Ask a model of yours";
export const lead = "Models that headstart transfer fitted to labels. Choose one, change the text, and see its answer.";

const EXAMPLES = {
  classify: { text: "A warm , funny , engaging film ." },
  tag: { text: "Angela Merkel flew from Berlin to Rome ." },
  pair: { first: "A man sleeps on a bench .", second: "Nobody is awake ." },
  qa: { question: "Who signed it?", context: "The treaty was written in Rome. Ada Moss signed it in 1957, two days after the others." },
  srl: { text: "Ada sold her house to a friend last year ." },
  coref: { text: "Ada met Eve when she was in Rome. It was her first visit." },
};
const TITLES = { text: "Text", first: "First text", second: "Second text", question: "Question", context: "Text with the answer" };
const LONG = ["text", "context"];

export function draw(models) {
  const runs = models.filter((one) => one.can.includes("predict"));
  if (!runs.length) {
    return [element("p", { text: "No task model is served here. Start the server with a run of headstart transfer." })];
  }
  const fields = element("div", { className: "fields" });
  const result = output();
  result.classList.add("card");
  let chosen = runs[0];
  const answer = () => {
    const given = Object.fromEntries(chosen.asks.map((name) => [name, form.elements[name].value]));
    show(result, () => answered(chosen, given));
  };
  const fill = () => {
    const example = EXAMPLES[chosen.task] ?? {};
    fields.replaceChildren(...chosen.asks.map((name) => {
      const input = LONG.includes(name) ? element("textarea", { name, required: true, rows: "4" }) : element("input", { name, required: true, autocomplete: "off" });
      input.value = example[name] ?? "";
      return field(TITLES[name] ?? name, input);
    }));
    if (chosen.asks.every((name) => name in example)) answer();
    else result.replaceChildren();
  };
  const options = runs.map((one) => [one.name, element("span", {}, one.name, element("small", { text: one.title }))]);
  const model = choice("Model", "model", options, chosen.name, (name) => { chosen = runs.find((one) => one.name === name); fill(); });
  const form = element("form", {}, fields, element("button", { text: "Answer" }));
  form.addEventListener("submit", (event) => { event.preventDefault(); answer(); });
  fill();
  return [model, element("div", { className: "split" }, form, result)];
}

async function answered(model, given) {
  const { answers, truncated } = await post("predict", { model: model.name, inputs: [given] });
  const draw = DRAWN[model.task] ?? ((answer) => element("pre", { text: JSON.stringify(answer, null, 1) }));
  const drawn = answers[0].flatMap((answer) => draw(answer, given));
  if (truncated) drawn.push(soft("The text is longer than the model reads; a part of it was left out."));
  return [element("h3", { text: `Answer of ${model.name}` }), ...drawn];
}

const DRAWN = { classify: labels, pair: labels, tag: tags, srl: roles, qa: answerInContext, coref: chains };

function labels(answer) {
  const sorted = Object.entries(answer.probabilities).sort((a, b) => b[1] - a[1]);
  return [element("p", { className: "big", text: answer.label }), bars("Probability of each label", sorted)];
}

function tags(answer) {
  if (!answer.entities) {
    return element("p", { className: "said" }, ...answer.words.map((word, place) => element("span", { className: "tagged" }, word, element("small", { text: answer.tags[place] }))));
  }
  const text = marked(answer.text, answer.entities.map((one) => [one.start, one.end, one.type]));
  return answer.entities.length ? text : [text, soft("Nothing is named here.")];
}

function roles(answer) {
  if (!answer.predicates.length) return soft("No predicate was found.");
  return answer.predicates.map((one) => marked(answer.text, one.arguments.map((argument) => [argument.start, argument.end, argument.role])));
}

function answerInContext(answer, given) {
  if (!answer.answer) return soft("No answer stands in the text.");
  const others = answer.best.map((one) => [one.answer, one.probability]);
  return [
    element("p", { className: "big", text: answer.answer }), marked(given.context, [[answer.start, answer.end, ""]]),
    element("h4", { text: "The best spans" }), bars("Probability of each span", others),
  ];
}

function chains(answer) {
  const spans = answer.mentions.flatMap((chain, number) => chain.map((one) => [one.start, one.end, String(number + 1), number]));
  const listed = answer.mentions.map((chain) => element("li", { text: chain.map((one) => one.text).join(" · ") }));
  if (!listed.length) return [marked(answer.text, []), soft("No two mentions belong together.")];
  return [marked(answer.text, spans), element("h4", { text: "Chains" }), element("ol", {}, ...listed)];
}
