// Building elements. Text always becomes a text node, so no name of a file or a class is ever read as markup.

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (name === "hue") node.style.setProperty("--hue", value);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const fill = (node, ...children) => node.replaceChildren(...children.filter(Boolean));

export const button = (text, click, attributes = {}) =>
  make("button", { type: "button", on: { click }, ...attributes }, ...[text].flat());

// 12 345, with thin spaces; 1 image, 2 images; 1st, 2nd.
export const number = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
export const count = (value, one, many = one + "s") => `${number(value)} ${value === 1 ? one : many}`;

export function ordinal(value) {
  const last = value % 100;
  const ending = last > 10 && last < 14 ? "th" : (["th", "st", "nd", "rd"][value % 10] ?? "th");
  return number(value) + ending;
}
