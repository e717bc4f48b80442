// Help and export.

import { showProblem } from "./actions.js";
import { Failure, post } from "./api.js";
import { $, button, fill, make, number } from "./dom.js";

const KEYS = [
  ["1 … 9", "label the selected images with that class"],
  ["L", "type a class, new or old"],
  ["Enter", "accept the prediction"],
  ["Delete", "remove the label"],
  ["← ↑ → ↓", "move; with Shift, select a range"],
  ["Space", "add the image to the selection, or take it out"],
  ["A", "select all of this group"],
  ["Esc", "select nothing"],
  ["N", "label these next"],
  ["C", "by class"],
  ["Ctrl Z, Ctrl Y", "undo, redo: also after a restart"],
  ["?", "this help"],
];

const FORMS = [
  ["csv", "Table (CSV)", "one line per image, for spreadsheets and scripts"],
  ["folders", "Folders", "copies of the images, one folder per class"],
  ["imagefolder", "Hugging Face", "copies of the images with metadata.jsonl"],
  ["coco", "COCO", "one JSON file with categories"],
  ["label-studio", "Label Studio", "one JSON file of tasks"],
];

export function startDialogs() {
  const help = $("help");
  fill(
    help,
    make("h2", { id: "help-title" }, "How this works"),
    make("p", {}, "Select an image and say what it is. With one example of each of two classes, all other images are sorted; each further label makes the sorting better. Look at the first images of each class: there the computer is least sure."),
    make("p", {}, make("span", { class: "badge human" }, "solid"), " you said so. ", make("span", { class: "badge accepted" }, "outlined"), " you accepted a prediction. ", make("span", { class: "badge predicted" }, "dashed"), " a prediction."),
    make("dl", { class: "keys" }, ...KEYS.flatMap(([key, does]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, does)])),
    make("p", { class: "soft small" }, "Click selects one image, Ctrl-click several, Shift-click a range. Your images are only read. Nothing leaves this machine."),
    make("div", { class: "row" }, button("Close", () => help.close(), { class: "strong" })),
  );
  $("open-help").addEventListener("click", () => help.showModal());
  $("open-export").addEventListener("click", openExport);
}

function openExport() {
  const dialog = $("export");
  const choices = FORMS.map(([form, title, words], place) =>
    make("label", { class: "choice" }, make("input", { type: "radio", name: "form", value: form, checked: place === 0 }), make("span", {}, make("strong", {}, title), make("span", { class: "soft small" }, ` ${words}`))),
  );
  const predicted = make("input", { type: "checkbox", checked: true });
  const outcome = make("p", { class: "outcome", role: "status" });
  const submit = make("button", { type: "submit", class: "strong" }, "Export");
  const form = make(
    "form",
    {
      on: {
        submit: async (event) => {
          event.preventDefault();
          submit.disabled = true;
          outcome.textContent = "Writing…";
          try {
            const chosen = new FormData(form).get("form");
            const { path, images } = await post("/api/export", { form: chosen, predicted: predicted.checked });
            fill(outcome, `${number(images)} images written to `, make("code", {}, path));
          } catch (failure) {
            if (!(failure instanceof Failure)) throw failure;
            outcome.textContent = failure.message;
            if (failure.gone) showProblem(failure.message);
          }
          submit.disabled = false;
          submit.focus();
        },
      },
    },
    make("h2", { id: "export-title" }, "Export labels"),
    ...choices,
    make("label", { class: "choice" }, predicted, make("span", {}, "with predictions", make("span", { class: "soft small" }, " marked as such, with how sure they are"))),
    outcome,
    make("div", { class: "row" }, submit, button("Close", () => dialog.close(), { class: "quiet" })),
  );
  fill(dialog, form);
  dialog.showModal();
}
