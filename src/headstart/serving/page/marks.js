// Texts with marked spans.

import { element } from "./dom.js";

const TONES = 6;

// spans: [start, end, name, number of a colour], in characters; a span may hold others, and two never cross. Without
// such a number, spans of one name have one colour; a span without a name is only marked.
export function marked(text, spans) {
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
      const label = name ? element("small", { text: name }) : null;
      parts.push(element("mark", { className: tone(ordered[number]) }, ...inside(start, stop, number + 1), label));
      at = stop;
    }
    parts.push(characters.slice(at, end).join(""));
    return parts;
  };
  return element("p", { className: "said" }, ...inside(0, characters.length, 0));
}
