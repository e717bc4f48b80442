// The page: takes the session from the server, draws it, and turns keys and clicks into actions.

import { accept, ask, clear, labelAs, labelByName, pulse, redo, showProblem, showSaved, undo } from "./actions.js";
import { Failure, get, takeKey } from "./api.js";
import { auditKey, drawAudit, drawAuditCard } from "./audit.js";
import { bar, drawClasses, startClasses, tally } from "./classes.js";
import { drawDetail } from "./detail.js";
import { startDialogs } from "./dialogs.js";
import { $, button, count, fill, make, number } from "./dom.js";
import { draw, layout, neighbour, refresh, reveal, startGrid } from "./grid.js";
import { classAt, moveTo, onChange, select, show, store, takeState, targets, toggle } from "./store.js";

const PULSE = 4000;
const VIEWS = [
  ["classes", "By class", () => store.names.length],
  ["next", "Label these next", () => store.predictions.suggestions.length],
  ["changed", "Just changed", () => store.previous.size],
];

let shown = -1; // the image that had the focus when the page was last drawn

onChange((what) => {
  if (what === "focus") {
    reveal(store.active);
    refresh();
  } else {
    const counts = tally();
    drawHeader(counts.total);
    drawClasses(counts);
    drawAuditCard(counts.total);
    drawAudit();
    drawTabs();
    if (store.view !== "audit") layout();
    if (store.view !== "audit" && (what === "view" || store.active !== shown)) {
      reveal(store.active);
      refresh();
    }
  }
  shown = store.active;
  drawBar();
  drawDetail();
});

function drawHeader(total) {
  const all = store.names.length;
  $("progress-text").textContent = `${count(all, "image")}: ${number(total.human)} labelled by you, ${number(total.accepted)} accepted, ${number(total.predicted)} predicted`;
  fill($("progress"), bar(total, all));
  $("progress").setAttribute("aria-label", $("progress-text").textContent);
  for (const way of ["undo", "redo"]) {
    $(way).disabled = !store.state[way];
    $(way).title = store.state[way] ? `${way === "undo" ? "Undo" : "Redo"}: ${store.state[way]}` : `Nothing to ${way}`;
  }
  const known = new Set(store.state.labels.filter(Boolean)).size;
  $("start").hidden = known > 1 || store.view === "audit";
  fill($("start"), ...(known ? second() : first()));
}

const first = () => [
  make("h2", {}, "What is in these images?"),
  make("ol", {}, make("li", {}, "Click an image below."), make("li", {}, "Type what it is, for example “cat”, and press Enter."), make("li", {}, "Do the same for a second kind. Then all others are sorted, and you only correct.")),
];
const second = () => [
  make("h2", {}, "Now an example of something else"),
  make("p", {}, "With one labelled image of a second class, all other images are sorted."),
];

function drawTabs() {
  const tabs = VIEWS.map(([view, title, size]) =>
    button([title, " ", make("span", { class: "soft small" }, number(size()))], () => show(view), { role: "tab", "aria-selected": String(store.view === view), class: "tab" }),
  );
  if (store.view === "audit") tabs.push(button("Accuracy check", () => {}, { role: "tab", "aria-selected": "true", class: "tab" }));
  const had = document.activeElement?.closest("#tabs") ? [...$("tabs").children].indexOf(document.activeElement) : -1;
  fill($("tabs"), ...tabs);
  tabs[had]?.focus();
}

function drawBar() {
  const items = targets();
  $("bar-text").textContent = store.selected.size > 1 ? `${count(items.length, "image")} selected` : items.length ? "This image:" : "No image here";
  $("accept").disabled = !items.some((item) => !store.state.labels[item] && store.predictions.classes[item]);
  $("clear").disabled = !items.some((item) => store.state.labels[item]);
}

// Keys. What is typed into a field, and what a button understands, is left to it.
document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input, select, textarea") || document.querySelector("dialog[open]");
  const command = event.ctrlKey || event.metaKey;
  const letter = event.key.toLowerCase();
  if (field) {
    if (event.key === "Escape" && event.target.id === "label-name") $("grid").focus();
    return;
  }
  if (command && !event.altKey && (letter === "z" || letter === "y")) {
    event.preventDefault();
    return letter === "y" || event.shiftKey ? redo() : undo();
  }
  if (command || event.altKey) return;
  if (event.target.closest?.("button, a") && (event.key === "Enter" || event.key === " ")) return;
  if (onKey(event)) event.preventDefault();
});

function onKey(event) {
  const { key } = event;
  if (key === "?") return $("help").showModal(), true;
  if (/^[1-9]$/.test(key)) {
    if (store.view === "audit") return auditKey(key);
    const chosen = classAt(Number(key) - 1);
    return chosen && (labelAs(chosen.number), true);
  }
  if (key === "n" || key === "c") return show(key === "n" ? "next" : "classes"), $("grid").focus(), true;
  if (store.view === "audit") return false;
  if (/^(Arrow|Home$|End$|Page)/.test(key)) {
    moveTo(neighbour(key), { range: event.shiftKey });
    $("grid").focus({ preventScroll: true });
    return true;
  }
  const plain = {
    Enter: () => accept(),
    Delete: () => clear(),
    Backspace: () => clear(),
    Escape: () => (closePanels(), select([])),
    " ": () => toggle(store.active),
    l: () => $("label-name").focus(),
    a: () => select(store.groups.find((group) => group.items.includes(store.active))?.items ?? []),
  };
  return key in plain && (plain[key](), true);
}

const closePanels = () => delete document.body.dataset.panel;
const togglePanel = (panel) => () => {
  if (document.body.dataset.panel === panel) closePanels();
  else document.body.dataset.panel = panel;
};

$("undo").addEventListener("click", undo);
$("redo").addEventListener("click", redo);
$("accept").addEventListener("click", () => accept());
$("clear").addEventListener("click", () => clear());
$("toggle-classes").addEventListener("click", togglePanel("classes"));
$("toggle-detail").addEventListener("click", togglePanel("detail"));
for (const close of document.querySelectorAll("[data-close]")) close.addEventListener("click", closePanels);
$("problem-close").addEventListener("click", () => showProblem(""));
$("label-as").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = $("label-name").value.trim();
  if (!name) return $("label-name").focus();
  $("label-name").value = "";
  labelByName(name);
  $("grid").focus({ preventScroll: true });
});
document.addEventListener("visibilitychange", pulse);

async function start() {
  if (!takeKey()) {
    $("folder").textContent = "team label";
    showSaved("unsaved", "Not connected");
    return showProblem("This tab has no key. Open the address that was printed in the terminal; it lets you in.");
  }
  startGrid((items) => accept(items));
  startClasses();
  startDialogs();
  try {
    const session = await get("/api/session");
    store.names = session.names;
    $("folder").textContent = session.folder;
    document.title = `${session.folder} – team label`;
    const kept = session.state.absent;
    fill($("files"), "Saved in ", make("code", {}, session.journal), session.skipped_count ? make("span", {}, `. Left out, since they cannot be read: ${count(session.skipped_count, "file")}. `, details(session.skipped)) : "", kept ? ` ${count(kept, "label")} of images that are not in the folder now: kept, in case they return.` : "");
    showSaved("saved", "All changes saved");
    takeState(session.state);
    $("grid").focus({ preventScroll: true });
    ask(session.state.revision);
    setInterval(pulse, PULSE);
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    showSaved("unsaved", "Not connected");
    showProblem(failure.message);
  }
}

const details = (skipped) =>
  make("details", {}, make("summary", {}, "Which"), make("ul", {}, ...skipped.map(([path, reason]) => make("li", {}, make("bdi", {}, path), `: ${reason}`))));

start();
window.addEventListener("resize", draw);
