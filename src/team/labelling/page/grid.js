// The grid: however many images there are, only those near the window exist as elements.

import { imageAddress } from "./api.js";
import { $, button, count, fill, make, number } from "./dom.js";
import { className, describe, hue, moveTo, select, status, store, sureness, toggle } from "./store.js";

const GAP = 10;
const CAPTION = 36;
const HEADER = 58;
const BEYOND = 400; // pixels above and below the window that are kept ready

const grid = $("grid");
const canvas = $("canvas");
const tiles = new Map(); // item -> element, only for those that exist
const headers = new Map();
let lines = []; // [{ top, height, group } | { top, height, from, to }], from and to in the order
let columns = 1;
let side = 132;
let acceptGroup = () => {};

export function startGrid(accept) {
  acceptGroup = accept;
  grid.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(() => layout()).observe(grid);
  grid.addEventListener("click", (event) => {
    const tile = event.target.closest(".tile");
    if (!tile) return;
    const item = Number(tile.dataset.item);
    if (event.shiftKey) moveTo(item, { range: true });
    else if (event.ctrlKey || event.metaKey) toggle(item);
    else moveTo(item);
    grid.focus({ preventScroll: true });
  });
}

// Where everything stands. The image in focus keeps its place in the window if it was there.
export function layout() {
  const before = offsetOf(store.active);
  const width = grid.clientWidth - 2 * GAP;
  const wanted = width < 520 ? 104 : 140;
  columns = Math.max(2, Math.floor((width + GAP) / (wanted + GAP)));
  side = Math.floor((width - (columns - 1) * GAP) / columns);
  lines = [];
  let top = 0;
  let from = 0;
  for (const group of store.groups) {
    lines.push({ top, height: HEADER, group });
    top += HEADER;
    const end = from + group.items.length;
    for (; from < end; from = Math.min(from + columns, end)) {
      lines.push({ top, height: side + CAPTION + GAP, from, to: Math.min(from + columns, end) });
      top += side + CAPTION + GAP;
    }
  }
  canvas.style.height = `${top + GAP}px`;
  grid.style.setProperty("--side", `${side}px`);
  const now = topOf(store.active);
  if (before !== null && before > -side && before < grid.clientHeight && now !== null) grid.scrollTop = now - before;
  prune(headers, new Set()); // their counts may have changed; tiles stay, and only move
  draw();
  refresh();
}

function lineOf(item) {
  const place = store.place.get(item);
  if (place === undefined) return -1;
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines[middle].to ?? firstAfter(middle)) > place) high = middle;
    else low = middle + 1;
  }
  return lines[low]?.from === undefined ? -1 : low;
}

// A header's line holds no images: it ends where the images after it begin.
const firstAfter = (line) => lines[line + 1]?.from ?? 0;

const topOf = (item) => lines[lineOf(item)]?.top ?? null;
const offsetOf = (item) => (tiles.has(item) ? parseFloat(tiles.get(item).style.top) - grid.scrollTop : null);

export function draw() {
  const [top, bottom] = [grid.scrollTop - BEYOND, grid.scrollTop + grid.clientHeight + BEYOND];
  let first = 0;
  let end = lines.length;
  while (first < end) {
    const middle = (first + end) >> 1;
    if (lines[middle].top + lines[middle].height < top) first = middle + 1;
    else end = middle;
  }
  const needed = new Set();
  const titles = new Set();
  for (let index = first; index < lines.length && lines[index].top < bottom; index++) {
    const line = lines[index];
    if (line.group) {
      titles.add(line.group.key);
      if (!headers.has(line.group.key)) headers.set(line.group.key, canvas.appendChild(header(line)));
      continue;
    }
    for (let place = line.from; place < line.to; place++) {
      const item = store.order[place];
      needed.add(item);
      if (!tiles.has(item)) tiles.set(item, canvas.appendChild(tile(item)));
      const node = tiles.get(item);
      node.style.left = `${GAP + (place - line.from) * (side + GAP)}px`;
      node.style.top = `${line.top}px`;
      node.setAttribute("aria-posinset", place + 1);
      node.setAttribute("aria-setsize", store.order.length);
    }
  }
  prune(tiles, needed);
  prune(headers, titles);
}

function prune(nodes, needed) {
  for (const [key, node] of nodes) {
    if (needed.has(key)) continue;
    node.querySelector("img")?.removeAttribute("src"); // also ends a download that nobody waits for any more
    node.remove();
    nodes.delete(key);
  }
}

function header({ top, group }) {
  const guesses = group.items.filter((item) => status(item).kind === "predicted");
  const mine = group.items.length - guesses.length;
  const parts = [count(group.items.length, "image")];
  if (group.number) parts.push(`${number(mine)} from you`, `${number(guesses.length)} predicted, least sure first`);
  const node = make(
    "div",
    { class: "group", role: "presentation", hue: hue(group.number) },
    make("h3", { class: group.number ? "swatch" : "" }, make("bdi", {}, group.title)),
    make("p", { class: "soft small" }, parts.join(" · ")),
    button("Select all", () => select(group.items), { class: "quiet", tabindex: "-1" }),
    guesses.length > 0 && group.number > 0 && button(`Accept ${number(guesses.length)}`, () => acceptGroup(guesses), { class: "quiet", tabindex: "-1" }),
  );
  node.style.transform = `translateY(${top}px)`;
  return node;
}

function tile(item) {
  const image = make("img", { alt: "", draggable: "false", decoding: "async", src: imageAddress("thumbnail", item) });
  image.addEventListener("error", () => image.getAttribute("src") && image.replaceWith(make("span", { class: "broken" }, "cannot be shown")));
  const node = make(
    "div",
    { id: `item-${item}`, class: "tile", role: "option", "data-item": item },
    make("div", { class: "frame" }, image),
    make("div", { class: "caption" }),
  );
  mark(node, item);
  return node;
}

function mark(node, item) {
  const { kind, number: of, sure } = status(item);
  const was = store.previous.get(item);
  node.dataset.kind = kind;
  node.style.setProperty("--hue", hue(of));
  node.classList.toggle("active", item === store.active);
  node.classList.toggle("moved", was !== undefined);
  node.setAttribute("aria-selected", store.selected.size ? store.selected.has(item) : item === store.active);
  const words = `${store.names[item]}: ${describe(item)}${was ? `, before ${className(was)}` : ""}`;
  node.setAttribute("aria-label", words);
  node.title = words;
  const caption = node.lastChild;
  if (kind === "none") fill(caption, make("span", { class: "soft small" }, "no label yet"));
  else fill(caption, badge(kind, of), kind === "predicted" && make("span", { class: "sure" }, sureness(sure)));
}

export const badge = (kind, of) => make("span", { class: `badge ${kind}`, hue: hue(of) }, make("bdi", {}, className(of)));

export function refresh() {
  for (const [item, node] of tiles) mark(node, item);
  grid.setAttribute("aria-activedescendant", tiles.has(store.active) ? `item-${store.active}` : "");
}

export function reveal(item) {
  const line = lines[lineOf(item)];
  if (!line) return;
  const above = line.top - HEADER;
  const below = line.top + line.height + GAP - grid.clientHeight;
  if (grid.scrollTop > above) grid.scrollTop = above;
  else if (grid.scrollTop < below) grid.scrollTop = below;
  draw();
}

export function scrollToGroup(key) {
  const line = lines.find((each) => each.group?.key === key);
  if (line) grid.scrollTop = line.top;
}

// The image to go to from the one in focus by a key; rows of one group end where its images do.
export function neighbour(key) {
  const place = store.place.get(store.active) ?? 0;
  const line = lineOf(store.active);
  const rows = Math.max(1, Math.floor(grid.clientHeight / (side + CAPTION + GAP)));
  const steps = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: store.order.length - 1 };
  if (key in steps) return store.order[Math.min(Math.max(steps[key], 0), store.order.length - 1)];
  const vertical = { ArrowUp: -1, ArrowDown: 1, PageUp: -rows, PageDown: rows }[key];
  if (line < 0) return store.order[0];
  const column = place - lines[line].from;
  let target = line;
  for (let left = Math.abs(vertical), next = line; left > 0; ) {
    next += Math.sign(vertical);
    if (!lines[next]) break;
    if (lines[next].group) continue;
    target = next;
    left--;
  }
  return store.order[Math.min(lines[target].from + column, lines[target].to - 1)];
}
