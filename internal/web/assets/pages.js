// Makes pages live. Everything works without it, but for what happens by itself.

// Times are shown in the zone of the reader; recent ones as people say them, with the exact one as
// their title.
const language = document.documentElement.lang;
const format = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
const exact = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-local], [data-since])")) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) continue;
    if ("relative" in time.dataset) {
      const seconds = Math.max(0, (Date.now() - at) / 1000);
      const [unit, length] = units.find(([, length]) => seconds >= length) ?? ["second", 1];
      const text = relative.format(unit === "second" ? 0 : -Math.floor(seconds / length), unit);
      if (time.textContent !== text) time.textContent = text;
      time.title = exact.format(at);
    } else {
      time.title = time.textContent;
      time.textContent = format.format(at);
      time.dataset.local = "";
    }
  }
}
localTimes(document);
setInterval(() => localTimes(document), 20000);

// Menus close when the reader goes elsewhere.
const menus = ".menu[open], .confirm[open]";
document.addEventListener("click", (event) => {
  for (const open of document.querySelectorAll(menus)) {
    if (!open.contains(event.target)) open.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const open of document.querySelectorAll(menus)) {
    open.open = false;
    open.querySelector("summary").focus();
  }
});

// The sign in the header says whether the page is live.
const sign = document.querySelector("[data-live-state]");
function showState(on) {
  sign.hidden = false;
  sign.classList.toggle("on", on);
  sign.textContent = on ? sign.dataset.on : sign.dataset.off;
}

// listen opens a connection that comes back by itself after it was lost. Browsers
// give up on some failures; then it is opened anew.
function listen(path, since, events) {
  let last = since;
  let wait = 1000;
  function open() {
    const source = new EventSource(`${path}?since=${encodeURIComponent(last)}`);
    source.onopen = () => { showState(true); wait = 1000; };
    source.onerror = () => {
      showState(false);
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(open, wait);
      wait = Math.min(wait * 2, 30000);
    };
    for (const [name, handle] of Object.entries(events)) {
      source.addEventListener(name, (event) => {
        last = event.lastEventId;
        handle(event.data);
      });
    }
    addEventListener("pagehide", () => source.close(), { once: true });
  }
  open();
}

// Parts of a page are replaced when they differ from what the server sent last.
// One in which the reader is typing is left alone.
const sent = new Map();
const merges = new Map(); // functions that bring a part up to date in another way, by its id
for (const part of document.querySelectorAll("[data-part]")) sent.set(part.id, part.outerHTML);
let asking = null;
async function refresh(address) {
  if (asking) return void (asking.again = true);
  const mine = (asking = { again: false });
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (answer.ok && !answer.redirected) replaceParts(await answer.text());
  } catch {
    // The connection is lost; the page is brought up to date when it is back.
  } finally {
    asking = null;
    if (mine.again) setTimeout(() => refresh(address), 300);
  }
}
// A click is a press and a release on the same element: in between nothing moves.
let pressed = false;
let held = null;
addEventListener("pointerdown", () => { pressed = true; }, true);
for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => setTimeout(release, 100), true);
addEventListener("blur", release); // of the window
function release() {
  pressed = false;
  if (held === null) return;
  const html = held;
  held = null;
  replaceParts(html);
}
function replaceParts(html) {
  if (pressed) return void (held = html);
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const fresh of page.querySelectorAll("[data-part]")) {
    const stale = document.getElementById(fresh.id);
    const text = fresh.outerHTML;
    if (!stale || sent.get(fresh.id) === text || busy(stale)) continue;
    sent.set(fresh.id, text);
    const merge = merges.get(fresh.id);
    if (merge) {
      merge(stale, fresh);
      continue;
    }
    keepOpen(stale, fresh);
    stale.replaceWith(fresh);
    localTimes(fresh);
  }
}
// What the reader has opened stays open, and what is picked stays picked.
function keepOpen(stale, fresh) {
  const title = (details) => details.dataset.file ?? details.querySelector(":scope > summary")?.textContent.trim();
  const open = new Set([...stale.querySelectorAll("details[open]:not(.menu, .confirm)")].map(title));
  for (const details of fresh.querySelectorAll("details")) {
    if (open.has(title(details))) details.open = true;
  }
  const picked = new Set([...stale.querySelectorAll('input[name="pick"]:checked')].map((box) => box.value));
  for (const box of fresh.querySelectorAll('input[name="pick"]')) box.checked = picked.has(box.value);
}
// Filters of lists are folded on phones.
if (matchMedia("(max-width: 45rem)").matches) {
  for (const fold of document.querySelectorAll('[data-fold="true"]')) fold.open = false;
}
// A box in the head of a list picks all rows of the page.
document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-pick-all]")) return;
  for (const box of document.querySelectorAll('input[name="pick"]')) box.checked = event.target.checked;
});
function busy(part) {
  const active = document.activeElement;
  return part.contains(active) && (active.matches("input, textarea, select") || part.querySelector(".confirm[open]"));
}

const watched = document.querySelector("[data-live]");
if (watched) {
  // A page that is the answer to a form stands at the address of the form, and says its own.
  listen(watched.dataset.live, watched.dataset.since, { changed: () => refresh(watched.dataset.page ?? location.href) });
}

// The page of a task has a script of its own.
const ofTask = document.querySelector("[data-task]");
if (ofTask) import(ofTask.dataset.script).then((script) => script.start(ofTask, { listen, refresh, localTimes, merges }));

// What the scripts of single pages use too.
globalThis.toryo = { localTimes };
