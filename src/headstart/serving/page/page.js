// The frame: which views there are, which one is shown, and the models that they share.

import { get, keepToken, TokenWanted } from "./api.js";
import { element, field } from "./dom.js";
import * as contexts from "./contexts.js";
import * as layers from "./layers.js";
import * as predict from "./predict.js";
import * as runs from "./runs.js";
import * as tasks from "./tasks.js";

const VIEWS = { contexts, predict, layers, tasks, runs };
const view = document.getElementById("view");

function shown() {
  const name = location.hash.slice(1);
  return name in VIEWS ? name : "contexts";
}

function drawNavigation() {
  const links = Object.entries(VIEWS).map(([name, one]) => {
    const current = name === shown() ? { "aria-current": "page" } : {};
    return element("a", { href: `#${name}`, text: one.name, ...current });
  });
  document.getElementById("views").replaceChildren(...links);
}

function draw(models) {
  drawNavigation();
  const one = VIEWS[shown()];
  document.title = `${one.name} · Headstart explorer`;
  view.replaceChildren(element("h2", { text: one.title }), element("p", { className: "lead", text: one.lead }), ...one.draw(models));
}

function askForToken() {
  const input = element("input", { type: "password", autocomplete: "off", required: true });
  const form = element("form", { className: "row" }, field("Token of this server", input), element("button", { text: "Open" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(input.value);
    start();
  });
  view.replaceChildren(form);
  input.focus();
}

async function start() {
  try {
    const { models } = await get("models");
    draw(models);
    addEventListener("hashchange", () => { draw(models); view.focus({ preventScroll: true }); scrollTo(0, 0); });
  } catch (problem) {
    if (problem instanceof TokenWanted) askForToken();
    else view.replaceChildren(element("p", { className: "problem", text: problem.message }));
  }
}

// A link to #view would take the place of the view's own name in the address.
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); view.focus(); });
start();
