// Elements without HTML strings: whatever users type is text, never markup.

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

export function field(title, input) {
  return element("label", {}, element("span", { text: title }), input);
}

// A table of shares from 0 to 1, each with its number and a bar.
export function bars(caption, rows, digits = (value) => `${(100 * value).toFixed(1)} %`) {
  const body = rows.map(([name, value]) => {
    const bar = element("span", {});
    bar.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
    return element(
      "tr", {},
      element("th", { scope: "row", text: name }),
      element("td", { className: "number", text: digits(value) }),
      element("td", { className: "bar", "aria-hidden": "true" }, bar),
    );
  });
  return element("table", { className: "bars" }, element("caption", { className: "soft", text: caption }), element("tbody", {}, ...body));
}

// Runs an asynchronous answer to a form or a click, and shows its result, or in a sentence why there is none.
export async function show(place, answer) {
  place.setAttribute("aria-busy", "true");
  try {
    place.replaceChildren(...[await answer()].flat());
  } catch (problem) {
    place.replaceChildren(element("p", { className: "problem", text: problem.message }));
  } finally {
    place.removeAttribute("aria-busy");
  }
}

export function output() {
  return element("div", { "aria-live": "polite" });
}
