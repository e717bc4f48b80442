// Talking to the server. The key arrives once, in the address's fragment, and stays in this tab.

const STORE = "team-key";

export function takeKey() {
  const given = location.hash.slice(1);
  if (/^[\w-]{20,}$/.test(given)) {
    sessionStorage.setItem(STORE, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(STORE);
}

const key = () => sessionStorage.getItem(STORE) ?? "";

export const imageAddress = (size, item) => `/image/${size}/${item}?key=${encodeURIComponent(key())}`;

// unsaved: whether this failure means that something was not saved, rather than that it made no sense.
export class Failure extends Error {
  constructor(message, status) {
    super(message);
    this.unsaved = status !== 409 && status !== 422;
    this.gone = status === 0;
  }
}

async function request(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, { ...options, headers: { "x-team-key": key(), ...options.headers } });
  } catch {
    throw new Failure("The labelling program does not answer. Start it again in the terminal with the same command; all that was shown as saved is safe.", 0);
  }
  let content = null;
  try {
    content = await answer.json();
  } catch {
    if (answer.ok) throw new Failure("The program’s answer was cut off. Try again.", 500);
  }
  if (!answer.ok) {
    const text = content?.error ?? `the program answered with error ${answer.status}; load the page again`;
    throw new Failure(text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : "."), answer.status);
  }
  return content;
}

export const get = (address) => request(address);
export const post = (address, body) =>
  request(address, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
