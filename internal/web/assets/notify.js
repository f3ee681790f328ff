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
    tell(now.needs, now.quiet);
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

// What was told is remembered with when it was told, when it was last there, and whether it was
// away since it was told. Trouble that comes and goes is told of again after an hour. The others
// have another key when they come again; they are remembered for as long as a failure may come back
// into the list of the newest.
const hour = 3600 * 1000;
const remembered = (key) => (settling.has(key.split("/")[0]) ? hour : 8 * 24 * hour);
const mostRemembered = 2000;

// told is what was told. What has not been there for long is forgotten.
function told(now) {
  let known = null;
  try {
    known = JSON.parse(read(toldOf));
  } catch {
    // Whatever is there was not written by this script.
  }
  const all = known && typeof known === "object" ? Object.entries(known) : [];
  return new Map(all.filter(([key, one]) => one && now - one.seen < remembered(key)));
}

// mark says of what was told whether it is still there, and of trouble that it is away.
function mark(known, needs, now) {
  const there = new Set(needs.map((need) => need.key));
  for (const [key, one] of known) {
    if (there.has(key)) one.seen = now;
    else if (settling.has(key.split("/")[0])) one.away = true;
  }
}

function tell(needs, quiet) {
  const now = Date.now();
  const known = told(now);
  mark(known, needs, now);
  const lasting = needs.filter((need) => !settling.has(need.kind) || before.has(need.key));
  before = new Set(needs.map((need) => need.key));
  const again = (one) => one.away && now - one.told >= hour;
  const fresh = quiet ? [] : lasting.filter(({ key }) => !known.has(key) || again(known.get(key))); // it is told after the quiet hours, if it waits still
  for (const { key } of fresh) known.set(key, { told: now, seen: now, away: false });
  const kept = [...known].sort((a, b) => b[1].seen - a[1].seen).slice(0, mostRemembered); // so that this does not grow
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
