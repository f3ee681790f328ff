// Tells readers who want it what needs them, while a page is open. Of several pages one looks:
// the one that has the lock. What was told is kept in the browser, so that it is told once.

const choice = document.querySelector("[data-notify]");
const button = choice.querySelector("button");
const note = choice.querySelector("[data-notify-note]");
const every = 15000; // milliseconds
const most = 3; // single notifications at once; more are one
const wish = "toryo.notify";
const toldOf = "toryo.told";

function read(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}
function write(name, value) {
  try {
    localStorage.setItem(name, value);
    return true;
  } catch {
    return false;
  }
}
const wanted = () => read(wish) === "on" && Notification.permission === "granted";

function show() {
  button.setAttribute("aria-pressed", String(wanted()));
  note.textContent = wanted() ? choice.dataset.on : Notification.permission === "denied" ? choice.dataset.blocked : "";
}

choice.hidden = false;
if (!window.isSecureContext || !("Notification" in window) || !navigator.locks) {
  button.disabled = true;
  note.textContent = window.isSecureContext ? choice.dataset.unsupported : choice.dataset.insecure;
} else {
  show();
  button.addEventListener("click", async () => {
    if (wanted()) write(wish, "off");
    else if ((await Notification.requestPermission()) === "granted") write(wish, "on");
    show();
    look();
  });
  addEventListener("storage", show); // another page has changed it
  navigator.locks.request("toryo.notify", () => new Promise(() => { // for as long as the page is open
    look();
    setInterval(look, every);
  }));
}

let looking = false;
async function look() {
  if (!wanted() || looking) return;
  looking = true;
  try {
    const answer = await fetch("/needs.json", { headers: { Accept: "application/json" } });
    if (!answer.ok) return; // signed out, or the server is restarting
    const now = await answer.json();
    if (now.quiet) return; // it is told after the quiet hours, if it waits still
    tell(now.needs);
  } catch {
    // The connection is lost; the next look tells.
  } finally {
    looking = false;
  }
}

// Trouble that may be over soon is told of when it is still there at the next look: agents are
// silent, for example, until they have found a server that was started again.
const settling = new Set(["agent", "tasks", "server"]);
let before = new Set();

// What was told is remembered with when it was last there. Trouble that comes and goes is told of
// again after an hour. The others have another key when they come again; they are remembered for
// as long as a failure may come back into the list of the newest.
const hour = 3600 * 1000;
const remembered = (key) => (settling.has(key.split("/")[0]) ? hour : 8 * 24 * hour);
const mostRemembered = 2000;

function told() {
  let known = null;
  try {
    known = JSON.parse(read(toldOf));
  } catch {
    // Whatever is there was not written by this script.
  }
  return new Map(known && typeof known === "object" ? Object.entries(known) : []);
}

function tell(needs) {
  const now = Date.now();
  const known = told();
  const lasting = needs.filter((need) => !settling.has(need.kind) || before.has(need.key));
  before = new Set(needs.map((need) => need.key));
  const fresh = lasting.filter((need) => !known.has(need.key));
  for (const need of needs) if (known.has(need.key)) known.set(need.key, now);
  for (const need of fresh) known.set(need.key, now);
  // What has been over for long is forgotten, so that this does not grow.
  const kept = [...known].filter(([key, at]) => now - at < remembered(key)).sort((a, b) => b[1] - a[1]).slice(0, mostRemembered);
  if (!write(toldOf, JSON.stringify(Object.fromEntries(kept)))) return;
  if (fresh.length > most) {
    popUp(`${choice.dataset.many} (${fresh.length})`, fresh.map((need) => need.what).slice(0, most).join("\n"), "toryo.many", "/");
    return;
  }
  for (const need of fresh) popUp(need.what, need.detail, need.key, need.path);
}

function popUp(title, body, tag, path) {
  try {
    // One that takes the place of another that is still shown is shown anew.
    const shown = new Notification(title, { body, tag, renotify: true, lang: document.documentElement.lang });
    shown.addEventListener("click", () => {
      shown.close();
      window.open(path, "toryo.need"); // the page that is open may have a text in a field
    });
  } catch {
    note.textContent = choice.dataset.unsupported; // some phones have them for installed sites only
  }
}
