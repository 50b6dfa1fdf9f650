// A figure over the steps of a training.

import { drawn, element } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [420, 200, 46, 10, 8, 24];

// From so many points on, the mean of a point's neighbours is drawn over it: the loss of single batches is noisy.
const MANY = 50;
const SHARE = 0.02;

// points: [step, value]; two or more. kind: of the training, which has its colour.
export function curve(figure, run, points, kind) {
  const steps = points.map(([step]) => step);
  const values = points.map(([, value]) => value);
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  const ticks = round(Math.min(...values), Math.max(...values));
  const [low, high] = [ticks[0], ticks.at(-1)];
  const x = (step) => LEFT + ((step - first) / (last - first || 1)) * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - BOTTOM - TOP);
  const said = `${figure} of ${run}: ${short(values[0])} at step ${count(steps[0])}, ${short(values.at(-1))} at step ${count(steps.at(-1))}`;
  const line = (heights) => heights.map((value, at) => `${x(steps[at]).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const smooth = values.length > MANY ? means(values, Math.ceil(SHARE * values.length)) : null;
  const dot = drawn("circle", { class: "dot", r: 3.5, cx: x(steps.at(-1)), cy: y(values.at(-1)) });
  const svg = drawn(
    "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said },
    ...ticks.flatMap((value) => [
      drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
      drawn("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)),
    ]),
    drawn("text", { x: LEFT, y: HEIGHT - 5 }, `step ${count(first)}`),
    drawn("text", { x: WIDTH - RIGHT, y: HEIGHT - 5, "text-anchor": "end" }, count(last)),
    drawn("polyline", { class: smooth ? "curve noise" : "curve", points: line(values) }),
    ...(smooth ? [drawn("polyline", { class: "curve", points: line(smooth) })] : []), dot,
  );
  const number = element("b", {});
  const place = element("span", { className: "soft" });
  const tell = (at) => {
    number.textContent = short(values[at]);
    place.textContent = `step ${count(steps[at])}`;
    dot.setAttribute("cx", x(steps[at]));
    dot.setAttribute("cy", y(values[at]));
  };
  tell(points.length - 1);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const pointed = ((event.clientX - box.left) / box.width) * WIDTH;
    tell(steps.reduce((best, step, at) => (Math.abs(x(step) - pointed) < Math.abs(x(steps[best]) - pointed) ? at : best), 0));
  });
  svg.addEventListener("pointerleave", () => tell(points.length - 1));
  return element("figure", { className: `card ${kind}` }, element("figcaption", {}, element("span", { text: figure }), number, place), svg);
}

// Of each value and its neighbours on both sides, as many as there are.
function means(values, reach) {
  return values.map((_, at) => {
    const near = values.slice(Math.max(0, at - reach), at + reach + 1);
    return near.reduce((sum, value) => sum + value, 0) / near.length;
  });
}

// Four or so round values that hold both.
function round(low, high) {
  const width = high - low || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(width / 3));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => width / one <= 4.5);
  const first = Math.floor(low / step);
  const steps = Math.max(1, Math.ceil(high / step) - first);
  return Array.from({ length: steps + 1 }, (_, number) => (first + number) * step);
}

function short(value) {
  return Math.abs(value) >= 10000 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

function count(value) {
  return value.toLocaleString("en");
}
