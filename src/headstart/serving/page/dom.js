// Elements without HTML strings: whatever users type is text, never markup.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made && typeof value !== "string") made[key] = value;
    else if (key === "text") made.textContent = value;
    else made.setAttribute(key === "className" ? "class" : key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function drawn(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function soft(text) {
  return element("p", { className: "soft", text });
}

export function field(title, input) {
  return element("label", { className: "field" }, element("span", { text: title }), input);
}

// One of several, all of them in view: radio buttons. options: [value, what the label shows, its longer name].
export function choice(legend, name, options, chosen, changed) {
  const labels = options.map(([value, shown, title]) => {
    const input = element("input", { type: "radio", name, value, checked: value === chosen, ...(title ? { "aria-label": title } : {}) });
    input.addEventListener("change", () => changed(value));
    return element("label", title ? { title } : {}, input, typeof shown === "string" ? element("span", { text: shown }) : shown);
  });
  const shown = element("span", { className: "legend", "aria-hidden": "true", text: legend });
  return element("div", { className: "choice", role: "radiogroup", "aria-label": legend }, shown, element("div", {}, ...labels));
}

const LONG = 22;

// A table of shares from 0 to 1, each with a bar and its number.
export function bars(caption, rows, digits = percent) {
  const body = rows.map(([name, value]) => {
    const bar = element("span", {});
    bar.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
    return element(
      "tr", {},
      element("th", { scope: "row", text: name, ...(name.length > LONG ? { className: "long" } : {}) }),
      element("td", { className: "bar", "aria-hidden": "true" }, element("div", {}, bar)),
      element("td", { className: "number", text: digits(value) }),
    );
  });
  return element("table", { className: "bars" }, element("caption", { className: "hidden", text: caption }), element("tbody", {}, ...body));
}

export function percent(value) {
  return `${(100 * value).toFixed(value < 0.0995 || value > 0.995 ? 1 : 0)} %`;
}

// What belongs to one model; its kind has a colour, on every view the same.
export function card(kind, title, ...children) {
  return element("section", { className: `card ${kind}` }, element("h3", { text: title }), ...children);
}

const asked = new WeakMap();

// Runs an asynchronous answer to a form or a click, and shows its result, or in a sentence why there is none. Of several
// under way for one place, the last counts.
export async function show(place, answer) {
  const own = (asked.get(place) ?? 0) + 1;
  asked.set(place, own);
  place.setAttribute("aria-busy", "true");
  let found;
  try {
    found = [await answer()].flat();
  } catch (problem) {
    found = [element("p", { className: "problem", text: problem.message })];
  }
  if (asked.get(place) !== own) return;
  place.replaceChildren(...found);
  place.removeAttribute("aria-busy");
}

export function output() {
  return element("div", { className: "output", "aria-live": "polite" });
}
