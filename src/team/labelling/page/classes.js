// The classes at the side, their counts, and what can be done with them.

import { addClass, labelAs, merge, rename } from "./actions.js";
import { $, button, count, fill, make, number } from "./dom.js";
import { scrollToGroup } from "./grid.js";
import { className, hue, show, status, store } from "./store.js";

export function startClasses() {
  $("add-class").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = $("add-name").value.trim();
    if (!name) return $("add-name").focus();
    $("add-name").value = "";
    addClass(name);
  });
}

// Images by kind, for the whole folder and by class.
export function tally() {
  const total = { human: 0, accepted: 0, predicted: 0, none: 0 };
  const classes = new Map(store.state.classes.map((each) => [each.number, { human: 0, accepted: 0, predicted: 0 }]));
  for (let item = 0; item < store.names.length; item++) {
    const { kind, number: of } = status(item);
    total[kind]++;
    if (kind !== "none") classes.get(of)[kind]++;
  }
  return { total, classes };
}

export function drawClasses({ classes }) {
  const rows = store.state.classes.map(({ number: of, name }, place) => {
    const own = classes.get(of);
    const all = own.human + own.accepted + own.predicted;
    return make(
      "li",
      { class: "class", hue: hue(of) },
      make("kbd", { "aria-hidden": "true" }, place < 9 ? String(place + 1) : "·"),
      button(
        [make("bdi", { class: "swatch" }, name), make("span", { class: "soft small" }, number(all))],
        () => {
          show("classes");
          scrollToGroup(`class-${of}`);
        },
        { class: "class-name", title: `Go to ${name}`, "aria-label": `${name}: ${count(all, "image")}, ${own.human} by you, ${own.accepted} accepted` },
      ),
      button("⋯", () => edit(of), { class: "quiet", "aria-label": `Rename or merge ${name}`, title: "Rename or merge" }),
      bar(own, all),
    );
  });
  fill($("classes"), ...rows);
  if (!rows.length) fill($("classes"), make("li", { class: "soft" }, "None yet. Select an image and type what it is."));
  fill($("class-names"), ...store.state.classes.map(({ name }) => make("option", { value: name })));
  const chips = store.state.classes.slice(0, 9).map(({ number: of, name }, place) =>
    button([make("kbd", { "aria-hidden": "true" }, String(place + 1)), make("bdi", {}, name)], () => labelAs(of), { class: "chip", hue: hue(of), title: `Label ${name} (${place + 1})` }),
  );
  fill($("chips"), ...chips);
}

export function bar(counts, all) {
  const node = make("span", { class: "mini", "aria-hidden": "true" });
  for (const kind of ["human", "accepted", "predicted"]) {
    const part = make("span", { class: kind });
    part.style.width = `${(100 * (counts[kind] ?? 0)) / Math.max(all, 1)}%`;
    node.append(part);
  }
  return node;
}

function edit(of) {
  const dialog = $("class-dialog");
  const others = store.state.classes.filter((each) => each.number !== of);
  const name = make("input", { id: "new-name", value: className(of), maxlength: "100", autocomplete: "off" });
  const into = make("select", { id: "merge-into" }, ...others.map((each) => make("option", { value: each.number }, each.name)));
  const done = (change) => (event) => {
    event.preventDefault();
    dialog.close();
    change();
  };
  fill(
    dialog,
    make("h2", { id: "class-dialog-title" }, "Class ", make("bdi", {}, `“${className(of)}”`)),
    make(
      "form",
      { on: { submit: done(() => rename(of, name.value)) } },
      make("label", { for: "new-name" }, "New name"),
      make("div", { class: "row" }, name, make("button", { type: "submit", class: "strong" }, "Rename")),
    ),
    others.length > 0 &&
      make(
        "form",
        { on: { submit: done(() => merge(of, Number(into.value))) } },
        make("label", { for: "merge-into" }, "Merge into another class: its labels move there"),
        make("div", { class: "row" }, into, make("button", { type: "submit" }, "Merge")),
      ),
    make("div", { class: "row" }, button("Close", () => dialog.close(), { class: "quiet" })),
  );
  dialog.showModal();
  name.select();
}
