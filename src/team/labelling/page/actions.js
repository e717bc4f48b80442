// Everything that changes something: sent one after another, shown as saved only when the server has said so.

import { Failure, get, post } from "./api.js";
import { $, count, number } from "./dom.js";
import { after, changed, moveTo, status, store, takePredictions, takeState, targets } from "./store.js";

let queue = Promise.resolve();
let under = 0; // actions sent and not answered
let wanted = -1; // the revision whose predictions are asked for
let asking = false;

export function showSaved(state, text) {
  $("saved").dataset.state = state;
  $("saved-text").textContent = text;
}

export function showProblem(text, retry = null) {
  $("problem").hidden = !text;
  $("problem-text").textContent = text ?? "";
  $("problem-retry").hidden = !retry;
  $("problem-retry").onclick = retry;
}

export const tell = (text) => {
  $("news").textContent = text;
};

export function act(action) {
  under++;
  showSaved("saving", "Saving…");
  queue = queue.catch(() => {}).then(async () => {
    try {
      const state = await post("/api/act", action);
      under--;
      showProblem("");
      if (!under) showSaved("saved", "All changes saved");
      takeState(state);
      ask(state.revision);
      return true;
    } catch (failure) {
      under--;
      if (!(failure instanceof Failure)) throw failure;
      if (failure.unsaved) showSaved("unsaved", "Last change not saved");
      else if (!under) showSaved("saved", "All changes saved");
      showProblem(failure.message, failure.unsaved ? () => act(action) : null);
      changed("state");
      return false;
    }
  });
  return queue;
}

// Predictions for the newest state; requests that a newer change has overtaken are not repeated.
export async function ask(revision) {
  wanted = Math.max(wanted, revision);
  if (asking) return;
  asking = true;
  document.body.dataset.busy = "";
  try {
    while (store.predictions.revision < wanted) {
      const predictions = await get(`/api/predictions?revision=${wanted}`);
      if (predictions.problem) showProblem(`Predictions could not be made: ${predictions.problem}. Your labels are saved.`);
      const first = store.predictions.revision < 0;
      if (predictions.revision > store.predictions.revision) {
        takePredictions(predictions);
        if (!first && predictions.classes.some(Boolean)) report();
      }
    }
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    showProblem(failure.message, () => ask(wanted));
    if (failure.gone) showSaved("unsaved", "Not connected");
  } finally {
    asking = false;
    delete document.body.dataset.busy;
  }
}

function report() {
  const moved = store.previous.size;
  tell(moved ? `${count(moved, "prediction")} changed` : "Predictions updated, none changed");
}

// What the person asks for.

const move = (items) => {
  const next = after(items);
  store.selected.clear();
  moveTo(next);
};

export function labelAs(of, items = targets()) {
  if (!items.length) return;
  act({ do: "label", labels: { [of]: items } });
  move(items);
}

export function labelByName(name, items = targets()) {
  const known = store.state.classes.find((each) => each.name.toLowerCase() === name.trim().toLowerCase());
  if (known) return labelAs(known.number, items);
  if (!items.length) return addClass(name);
  act({ do: "label", labels: { 0: items }, name });
  move(items);
}

export function accept(items = targets()) {
  const labels = {};
  for (const item of items) {
    const { kind, number: of } = status(item);
    if (kind === "predicted") (labels[of] ??= []).push(item);
  }
  const all = Object.values(labels).flat();
  if (!all.length) return tell("Nothing to accept: no prediction here");
  act({ do: "label", source: "accepted", labels });
  tell(`Accepted ${number(all.length)}`);
  move(all);
}

export function clear(items = targets()) {
  const labelled = items.filter((item) => store.state.labels[item]);
  if (!labelled.length) return tell("No label to remove here");
  act({ do: "clear", items: labelled });
}

export const addClass = (name) => act({ do: "add", name });
export const rename = (of, name) => act({ do: "rename", number: of, name });
export const merge = (of, into) => act({ do: "merge", number: of, into });
export const undo = () => store.state.undo && act({ do: "undo" });
export const redo = () => store.state.redo && act({ do: "redo" });
export const startAudit = () => act({ do: "audit" });
export const endAudit = () => act({ do: "end_audit" });
export const answerAudit = (item, of) => act({ do: "label", labels: { [of]: [item] }, audit: true });

// Is the program still there, and did another tab change anything?
export async function pulse() {
  if (document.hidden || under) return;
  try {
    const { revision } = await get("/api/pulse");
    if ($("saved").dataset.state === "unsaved" && $("saved-text").textContent === "Not connected") {
      showSaved("saved", "All changes saved");
      showProblem("");
    }
    if (revision !== store.state.revision && !under) {
      takeState((await get("/api/session")).state);
      ask(revision);
    }
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    showSaved("unsaved", "Not connected");
    showProblem(failure.message);
  }
}
