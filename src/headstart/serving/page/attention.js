// The attention of one head over a sentence: lines from each word to those that it looks at.

import { post } from "./api.js";
import { choice, drawn, element, field, output, percent, show, soft } from "./dom.js";

const SENTENCE = "The kids play in the garden after school .";
const ROW = 28;
// Smaller shares are no lines: they would hide the others.
const FAINT = 0.02;

export function attentionOver(models) {
  const sentence = element("input", { value: SENTENCE, required: true, name: "attended", maxLength: 300, autocomplete: "off" });
  const form = element("form", { className: "row" }, field("A sentence", sentence), element("button", { text: "Look" }));
  const heads = element("div", {});
  const settings = element("div", { className: "settings" });
  const result = output();
  let model = models[0];
  let layer = 1;
  let head;
  const attended = async () => {
    const found = await post("attention", { model: model.name, text: sentence.value, layer });
    if (!(head < found.heads.length)) head = sharpest(found.heads);
    const picture = element("div", {}, ...figure(found.units, found.heads[head]));
    const options = found.heads.map((shares, number) => [number, thumbnail(shares), `Head ${number + 1}`]);
    heads.replaceChildren(choice("Head", "head", options, head, (number) => {
      head = number;
      picture.replaceChildren(...figure(found.units, found.heads[head]));
    }));
    return picture;
  };
  const look = () => show(result, attended);
  const offer = () => {
    const layers = Array.from({ length: model.layers - 1 }, (_, number) => [number + 1, String(number + 1)]);
    layer = Math.min(layer, layers.length);
    settings.replaceChildren(
      ...(models.length > 1 ? [choice("Model", "bert", models.map((one) => [one.name, one.name]), model.name, (name) => {
        model = models.find((one) => one.name === name);
        head = undefined;
        offer();
        settings.querySelector(":checked").focus();
      })] : []),
      choice("Layer", "layer", layers, layer, (number) => { layer = number; head = undefined; look(); }),
      heads,
    );
    look();
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); look(); });
  offer();
  return [form, settings, result];
}

// The head whose words most look at one other word: many look at [CLS] and [SEP], the first unit and the last, or at all.
function sharpest(heads) {
  const sharp = heads.map((shares) => shares.slice(1, -1).reduce((sum, row, from) => sum + Math.max(...row.slice(1, -1).filter((_, to) => to !== from), 0), 0));
  return sharp.indexOf(Math.max(...sharp));
}

function thumbnail(shares) {
  const canvas = element("canvas", { width: shares.length, height: shares.length, "aria-hidden": "true" });
  // Its colour is known once it is on the page.
  requestAnimationFrame(() => {
    const pen = canvas.getContext("2d");
    pen.fillStyle = getComputedStyle(canvas).color;
    shares.forEach((row, from) => row.forEach((share, to) => {
      pen.globalAlpha = Math.sqrt(share);
      pen.fillRect(to, from, 1, 1);
    }));
  });
  return canvas;
}

function figure(units, shares) {
  const lines = shares.flatMap((row, from) => row.map((share, to) => line(from, to, share))).filter(Boolean);
  const svg = drawn("svg", { viewBox: `0 0 100 ${ROW * units.length}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...lines);
  svg.style.height = `calc(var(--row) * ${units.length})`;
  const isMark = (place) => place === 0 || place === units.length - 1;
  const numbers = units.map(() => element("small", {}));
  const right = units.map((unit, to) => element("li", {}, element("span", { text: unit, ...(isMark(to) ? { className: "mark" } : {}) }), numbers[to]));
  const told = soft("");
  told.setAttribute("role", "status");
  let kept = null;
  const paint = (from) => {
    for (const one of lines) one.classList.toggle("aside", from !== null && one.dataset.from !== String(from));
    right.forEach((item, to) => {
      item.firstChild.style.setProperty("--share", from === null ? 0 : shares[from][to]);
      numbers[to].textContent = from === null ? "" : percent(shares[from][to]);
    });
    told.textContent = from === null ? "Point at a word on the left, or choose it, to see where it looks." : said(units, shares[from], units[from]);
  };
  const buttons = units.map((unit, from) => {
    const button = element("button", { type: "button", text: unit, "aria-pressed": "false", ...(isMark(from) ? { className: "mark" } : {}) });
    button.addEventListener("pointerenter", () => paint(from));
    button.addEventListener("pointerleave", () => paint(kept));
    button.addEventListener("click", () => {
      kept = kept === from ? null : from;
      buttons.forEach((other, number) => other.setAttribute("aria-pressed", String(number === kept)));
      paint(kept);
    });
    return button;
  });
  paint(null);
  const picture = element(
    "div", { className: "attention" }, element("h4", { className: "from", text: "Word" }), element("span", {}), element("h4", { text: "looks at" }),
    element("ul", { className: "from" }, ...buttons.map((button) => element("li", {}, button))), svg, element("ul", { className: "to" }, ...right),
  );
  return [picture, told, table(units, shares)];
}

function line(from, to, share) {
  if (share < FAINT) return null;
  const [y, end] = [(from + 0.5) * ROW, (to + 0.5) * ROW];
  const path = drawn("path", { d: `M0 ${y} C50 ${y} 50 ${end} 100 ${end}`, "stroke-width": (0.75 + 4 * share).toFixed(2), "stroke-opacity": Math.min(1, 0.1 + share).toFixed(3) });
  path.dataset.from = from;
  return path;
}

function said(units, row, word) {
  const best = row.map((share, to) => [share, units[to]]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  return `“${word}” looks at ${best.map(([share, unit]) => `${unit} (${percent(share)})`).join(", ")}.`;
}

function table(units, shares) {
  const head = units.map((unit) => element("th", { scope: "col", text: unit }));
  const body = units.map((unit, from) => element("tr", {}, element("th", { scope: "row", text: unit }), ...shares[from].map((share) => element("td", { text: share.toFixed(2) }))));
  return element(
    "details", {}, element("summary", { text: "As a table" }),
    element("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": "Attention as a table" }, element(
      "table", { className: "shares" }, element("caption", { className: "hidden", text: "Rows look at columns" }),
      element("thead", {}, element("tr", {}, element("td", {}), ...head)), element("tbody", {}, ...body),
    )),
  );
}
