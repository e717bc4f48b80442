// The accuracy check: a few random images, labelled without seeing what was predicted.

import { answerAudit, endAudit, startAudit } from "./actions.js";
import { imageAddress } from "./api.js";
import { $, button, count, fill, make, number } from "./dom.js";
import { classAt, hue, percent, show, store } from "./store.js";

const ENOUGH = 10; // answers below which a percentage would only mislead
let shown = "";
const answered = new Set(); // images whose answer is sent and not acknowledged yet

const waiting = () => (store.state.audit?.waiting ?? []).filter((item) => !answered.has(item));

function answer(item, of) {
  answered.add(item);
  drawAudit();
  answerAudit(item, of).then(() => {
    answered.delete(item); // from here on the server says what is waiting
    drawAudit();
  });
}

export function drawAuditCard(total) {
  const { audit } = store.state;
  const accuracy = audit?.accuracy;
  const open = audit && audit.waiting.length > 0;
  const parts = [make("h2", {}, "How accurate?")];
  if (accuracy) parts.push(...result(audit, open));
  else if (!audit) parts.push(make("p", { class: "soft small" }, total.predicted ? "Label 40 random images without seeing the prediction, and get an honest estimate." : "Once there are predictions, a small random check tells how many are right."));
  if (open) parts.push(button(accuracy ? `Go on (${audit.waiting.length} left)` : "Start the check", () => show("audit")));
  else if (total.predicted) parts.push(button(audit ? "Check anew" : "Check accuracy", async () => (await startAudit()) && show("audit")));
  fill($("audit-card"), ...parts);
}

function result({ accuracy, population }, open) {
  const { low, high, estimate, correct, checked } = accuracy;
  if (open && checked < ENOUGH) return [make("p", { class: "soft small" }, `${count(checked, "answer")} so far; after ${ENOUGH}, an estimate appears here.`)];
  const meter = make("div", { class: "interval", role: "img", "aria-label": `between ${percent(low)} and ${percent(high)}` }, make("span", {}), make("i", {}));
  meter.firstChild.style.left = `${low * 100}%`;
  meter.firstChild.style.width = `${Math.max(1, (high - low) * 100)}%`;
  meter.lastChild.style.left = `${estimate * 100}%`;
  return [
    make("p", { class: "figure" }, percent(estimate), make("span", { class: "soft small" }, " right")),
    meter,
    make("p", { class: "soft small" }, `${correct} of ${checked} checked were right. With 95 % confidence, ${percent(low)} to ${percent(high)} of the ${number(population)} predictions were, when the check began.`),
  ];
}

export function drawAudit() {
  const view = $("audit-view");
  view.hidden = store.view !== "audit";
  $("grid").hidden = $("bar").hidden = store.view === "audit";
  if (view.hidden) return;
  const { audit } = store.state;
  const item = waiting()[0];
  const now = `${item} ${audit?.waiting.length}`;
  if (now === shown && view.childElementCount) return;
  shown = now;
  const leave = button("Back to the images", () => show("classes"), { class: "quiet" });
  if (!audit) return fill(view, make("p", {}, "No check is under way."), leave);
  if (item === undefined) {
    const again = button("Close this check", async () => (await endAudit()) && show("classes"));
    return fill(view, make("h2", {}, "Checked"), ...(audit.accuracy ? result(audit, false) : []), make("p", { class: "soft" }, "Your answers count as labels from now on."), leave, again);
  }
  const done = audit.size - waiting().length;
  fill(
    view,
    make("h2", {}, "What is this?"),
    make("p", { class: "soft" }, `${count(done, "answer")} of ${audit.size}. The prediction is hidden, so that it cannot sway you.`),
    make("img", { class: "large", alt: store.names[item], src: imageAddress("preview", item) }),
    make("div", { class: "answers" }, ...store.state.classes.map(({ number: of, name }, place) =>
      button([place < 9 && make("kbd", {}, String(place + 1)), make("bdi", {}, name)], () => answer(item, of), { class: "chip", hue: hue(of) }))),
    leave,
  );
}

export function auditKey(key) {
  const item = waiting()[0];
  const chosen = classAt(Number(key) - 1);
  if (item === undefined || !chosen) return false;
  answer(item, chosen.number);
  return true;
}
