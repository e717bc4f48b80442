// What the page knows: the session as the server last told it, the predictions, what is selected, and in which order
// the images stand. Everything else draws from here and is told when it changes.

export const store = {
  names: [],
  state: { revision: -1, classes: [], labels: [], sources: "", undo: null, redo: null, audit: null },
  predictions: { revision: -1, classes: [], confidence: [], suggestions: [], problem: "" },
  previous: new Map(), // images whose predicted class changed with the last update -> the class before
  view: "classes",
  groups: [], // [{ key, title, number, items }], in the order shown
  order: [], // all items of the groups, one after another
  place: new Map(), // item -> its place in the order
  active: -1,
  anchor: -1, // where a range of a selection starts
  selected: new Set(),
};

const listeners = new Set();
export const onChange = (listener) => listeners.add(listener);
export const changed = (what) => listeners.forEach((listener) => listener(what));

let nameOf = new Map();
export const className = (number) => nameOf.get(number) ?? "";
export const classAt = (place) => store.state.classes[place];

// Hues far apart for classes that follow one another.
export const hue = (number) => Math.round((number * 137.5 + 112) % 360);

// human, accepted, predicted or none; with its class number and how sure a prediction is (0 to 1).
export function status(item) {
  const label = store.state.labels[item];
  if (label) return { kind: store.state.sources[item] === "h" ? "human" : "accepted", number: label, sure: 1 };
  const number = store.predictions.classes[item] ?? 0;
  if (!number || !className(number)) return { kind: "none", number: 0, sure: 0 };
  return { kind: "predicted", number, sure: store.predictions.confidence[item] / 1000 };
}

export function describe(item) {
  const { kind, number, sure } = status(item);
  if (kind === "human") return `labelled ${className(number)} by you`;
  if (kind === "accepted") return `${className(number)}, accepted by you`;
  if (kind === "predicted") return `predicted ${className(number)}, ${sureness(sure)} sure`;
  return "no label yet";
}

export const percent = (share) => `${Math.round(share * 100)} %`;
export const sureness = (share) => (share >= 0.995 ? "> 99 %" : percent(share)); // no guess is certain

export function takeState(state) {
  store.state = state;
  nameOf = new Map(state.classes.map((each) => [each.number, each.name]));
  arrange();
  changed("state");
}

export function takePredictions(predictions) {
  const before = store.predictions;
  store.previous = new Map();
  if (before.classes.length && before.revision !== predictions.revision) {
    predictions.classes.forEach((number, item) => {
      const old = before.classes[item];
      if (old && number && old !== number && !store.state.labels[item]) store.previous.set(item, old);
    });
  }
  if (before.revision < 0 && !store.selected.size) store.active = -1; // nobody has chosen an image yet: begin at the top
  store.predictions = predictions;
  arrange();
  changed("predictions");
}

export function show(view) {
  store.view = view;
  arrange();
  changed("view");
}

// Put the images in order: by class, in each class the guesses first, the least sure first, then what a person labelled.
export function arrange() {
  const { state, predictions } = store;
  if (store.view === "next") {
    const items = predictions.suggestions.filter((item) => !state.labels[item]);
    store.groups = [{ key: "next", title: "Most useful to label next", number: 0, items }];
  } else {
    const wanted = store.view === "changed" ? [...store.previous.keys()] : state.labels.keys();
    store.groups = byClass(wanted);
  }
  store.groups = store.groups.filter((group) => group.items.length);
  store.order = store.groups.flatMap((group) => group.items);
  store.place = new Map(store.order.map((item, place) => [item, place]));
  store.selected = new Set([...store.selected].filter((item) => store.place.has(item)));
  if (!store.place.has(store.active)) store.active = store.order[0] ?? -1;
}

function byClass(items) {
  const { state, predictions } = store;
  const rank = { predicted: 0, accepted: 2, human: 3 };
  const buckets = new Map([[0, []], ...state.classes.map((each) => [each.number, []])]);
  const keys = new Float32Array(state.labels.length);
  for (const item of items) {
    const { kind, number, sure } = status(item);
    keys[item] = (rank[kind] ?? 0) + (kind === "predicted" ? sure : 0);
    buckets.get(number).push(item);
  }
  const loose = buckets.get(0);
  buckets.delete(0);
  const groups = state.classes.map(({ number, name }) => ({ key: `class-${number}`, title: name, number, items: buckets.get(number) }));
  for (const group of groups) group.items.sort((a, b) => keys[a] - keys[b] || a - b);
  const first = new Set(predictions.suggestions.filter((item) => !status(item).number));
  const start = { key: "start", title: "Good ones to start with", number: 0, items: loose.length > 48 ? predictions.suggestions.filter((item) => first.has(item)) : [] };
  const taken = new Set(start.items);
  const rest = { key: "rest", title: "Not sorted yet", number: 0, items: loose.filter((item) => !taken.has(item)) };
  return [start, rest, ...groups];
}

// The images an action is for: the selected ones, or the one in focus.
export function targets() {
  if (store.selected.size) return store.order.filter((item) => store.selected.has(item));
  return store.active >= 0 ? [store.active] : [];
}

export function moveTo(item, { range = false, keep = false } = {}) {
  if (!store.place.has(item)) return;
  if (range) {
    const from = store.place.get(store.anchor) ?? store.place.get(store.active) ?? 0;
    const [low, high] = [from, store.place.get(item)].sort((a, b) => a - b);
    store.anchor = store.order[from];
    store.selected = new Set(store.order.slice(low, high + 1));
  } else {
    store.anchor = item;
    if (!keep) store.selected.clear();
  }
  store.active = item;
  changed("focus");
}

export function toggle(item) {
  if (!store.selected.size && store.active >= 0 && store.active !== item) store.selected.add(store.active);
  if (store.selected.has(item)) store.selected.delete(item);
  else store.selected.add(item);
  store.active = store.anchor = item;
  changed("focus");
}

export function select(items) {
  store.selected = new Set(items);
  if (items.length && !store.selected.has(store.active)) store.active = items[0];
  store.anchor = store.active;
  changed("focus");
}

// Where the focus goes when these images get a label: to the next in the order that has none, else the next.
export function after(items) {
  const gone = new Set(items);
  const last = Math.max(...items.map((item) => store.place.get(item) ?? 0));
  const later = store.order.slice(last + 1).filter((item) => !gone.has(item));
  const free = (item) => !store.state.labels[item];
  const earlier = () => store.order.slice(0, last).filter((item) => !gone.has(item));
  return later.find(free) ?? earlier().find(free) ?? later[0] ?? store.active;
}
