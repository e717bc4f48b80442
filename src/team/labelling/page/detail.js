// The image in focus: large, with what it is and why it is thought to be that.

import { get, imageAddress } from "./api.js";
import { $, fill, make, number, ordinal } from "./dom.js";
import { badge } from "./grid.js";
import { className, describe, moveTo, status, store, sureness } from "./store.js";

let shown = ""; // what the panel shows: item and revision
let timer = 0;

export function drawDetail() {
  const item = store.active;
  const now = `${item} ${store.state.revision} ${store.predictions.revision} ${store.view}`;
  if (now === shown) return;
  shown = now;
  const panel = $("detail-content");
  if (item < 0 || store.view === "audit") return fill(panel);
  const { kind, number: of, sure } = status(item);
  const image = make("img", { class: "large", alt: store.names[item], src: imageAddress("preview", item) });
  image.addEventListener("error", () => broken(image, item));
  const why = make("div", { class: "why" });
  fill(
    panel,
    image,
    make("p", { class: "file" }, make("bdi", {}, store.names[item])),
    make("p", { class: "verdict" }, of ? badge(kind, of) : null, " ", sentence(kind, sure)),
    why,
  );
  clearTimeout(timer);
  timer = setTimeout(() => explain(item, why, now), 150); // not for every image that the focus only passes
}

function sentence(kind, sure) {
  if (kind === "human") return "labelled by you";
  if (kind === "accepted") return "predicted, and accepted by you";
  if (kind === "predicted") return `predicted, ${sureness(sure)} sure`;
  return "No label yet.";
}

async function broken(image, item) {
  let reason = "it cannot be shown";
  try {
    await get(imageAddress("preview", item));
  } catch (failure) {
    reason = failure.message;
  }
  image.replaceWith(make("p", { class: "broken large" }, `This image cannot be shown: ${reason}`));
}

async function explain(item, why, asked) {
  let found;
  try {
    found = await get(`/api/explain/${item}`);
  } catch {
    return; // the picture is there; the pulse tells if the program is gone
  }
  if (asked !== shown) return;
  const { kind, number: of } = status(item);
  if (!found.neighbours.length) {
    return fill(why, make("p", { class: "soft" }, "Once you have labelled other images, this shows which of them it is like."));
  }
  const neighbours = found.neighbours.map(({ item: other, similarity }) =>
    make(
      "button",
      { type: "button", class: "example", title: `${store.names[other]}: ${describe(other)}`, on: { click: () => moveTo(other) } },
      make("img", { alt: store.names[other], src: imageAddress("thumbnail", other) }),
      badge(status(other).kind, status(other).number),
      make("span", { class: "soft small" }, `${Math.round(similarity * 100)} alike`),
    ),
  );
  const own = found.directions.find((each) => each.label === of) ?? found.directions[0];
  fill(
    why,
    make("h2", {}, kind === "predicted" || kind === "accepted" ? "Why this label" : "What it is like"),
    make("p", { class: "soft small" }, "Labelled examples most like it (100: the same):"),
    make("div", { class: "examples" }, ...neighbours),
    make("h3", {}, "Seen from both sides"),
    make("p", {}, "From the image: of ", number(found.directions.length), found.directions.length === 1 ? " class, " : " classes, ", name(own), ` is ${place(own.to_class)} to it.`),
    make("p", {}, "From the class: of ", number(found.unlabelled), " unlabelled images, this one is ", `${place(own.to_image)} to `, name(own), "."),
    kind === "predicted" && make("p", { class: "soft small" }, judge(own, found)),
    found.directions.length > 1 && table(found),
  );
}

const name = (direction) => make("strong", {}, make("bdi", {}, className(direction.label)));
const place = (rank) => (rank === 1 ? "the nearest" : `the ${ordinal(rank)} nearest`);

function judge(own, found) {
  const near = own.to_image <= Math.max(1, found.unlabelled / Math.max(found.directions.length, 2));
  if (own.to_class === 1 && near) return "Both sides agree.";
  if (own.to_class === 1) return "It is nearest to this class, but many other images are nearer: perhaps it belongs to a class that is not there yet.";
  return "Other evidence, from all images together, speaks for this class.";
}

function table({ directions }) {
  const rows = directions.slice(0, 6).map((each) =>
    make("tr", {}, make("td", {}, make("bdi", {}, className(each.label))), make("td", {}, ordinal(each.to_class)), make("td", {}, ordinal(each.to_image))),
  );
  const head = make("tr", {}, make("th", {}, "Class"), make("th", {}, "From the image"), make("th", {}, "From the class"));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}
