// Makes pages live. Everything works without it, but for what happens by itself.

// What the server has sent of each part of the page, before anything here changes it.
const sent = new Map();
for (const part of document.querySelectorAll("[data-part]")) sent.set(part.id, part.outerHTML);

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

// Parts of a page are replaced when they differ from what the server sent last. One in which the
// reader has typed something, or is about to, is left alone until that is over.
const merges = new Map(); // functions that bring a part up to date in another way, by its id
let asking = null;
let asked = null; // the address
async function refresh(address) {
  asked = address;
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
const skipped = new Set(); // the ids of the parts that were left alone
function replaceParts(html) {
  if (pressed) return void (held = html);
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const fresh of page.querySelectorAll("[data-part]")) {
    const stale = document.getElementById(fresh.id);
    const text = fresh.outerHTML;
    skipped.delete(fresh.id);
    if (!stale || sent.get(fresh.id) === text) continue;
    if (busy(stale)) {
      skipped.add(fresh.id);
      continue;
    }
    sent.set(fresh.id, text);
    const merge = merges.get(fresh.id);
    if (merge) merge(stale, fresh);
    else replacePart(stale, fresh);
  }
}
function replacePart(stale, fresh) {
  const { scrollLeft, scrollTop } = stale;
  const focused = stale.contains(document.activeElement) ? document.activeElement : null;
  const next = focused && (focused === stale ? fresh : sameIn(fresh, focused, stale));
  keepOpen(stale, fresh);
  stale.replaceWith(fresh);
  fresh.scrollLeft = scrollLeft;
  fresh.scrollTop = scrollTop;
  next?.focus({ preventScroll: true });
  showPicked(document);
  localTimes(fresh);
}
// What was left alone is brought up to date when the reader has gone elsewhere.
for (const name of ["focusout", "change", "reset", "toggle"]) document.addEventListener(name, () => setTimeout(catchUp), true);
function catchUp() {
  for (const id of skipped) {
    const part = document.getElementById(id);
    if (part && busy(part)) continue;
    skipped.delete(id);
    refresh(asked);
  }
}
// busy reports whether the reader is at something in a part that must not be taken away: a field
// that has the focus, a question that is open, or a field that has another value than at first,
// with the focus or without. A picked row is no reason: picks are kept.
function busy(part) {
  const active = document.activeElement;
  if (part.contains(active) && (active.matches("input:not([type=checkbox], [type=radio]), textarea, select") || part.querySelector(".confirm[open]"))) return true;
  return [...part.querySelectorAll("input, textarea, select")].some(edited);
}
function edited(field) {
  if (field.matches("[name=pick], [data-pick-all], [type=hidden]")) return false;
  if (field.matches("select")) {
    const first = [...field.options].findIndex((option) => option.defaultSelected);
    return field.selectedIndex !== Math.max(first, 0);
  }
  if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
  if (field.matches("[type=file]")) return field.files.length > 0;
  return field.value !== field.defaultValue;
}

// What the reader has opened or closed stays so, and what is picked stays picked.
const openAtFirst = new WeakSet(document.querySelectorAll("details[open]"));
function keepOpen(stale, fresh) {
  const now = new Map();
  for (const details of stale.querySelectorAll("details:not(.menu, .confirm)")) {
    if (details.open !== openAtFirst.has(details)) now.set(keyOf(details, stale), details.open);
  }
  for (const details of fresh.querySelectorAll("details:not(.menu, .confirm)")) {
    if (details.open) openAtFirst.add(details);
    details.open = now.get(keyOf(details, fresh)) ?? details.open;
  }
  const picked = new Set([...stale.querySelectorAll("input[name=pick]:checked")].map((box) => box.value));
  for (const box of fresh.querySelectorAll("input[name=pick]")) box.checked = picked.has(box.value);
}
// keyOf tells an element that can be opened from all others of its part, whatever its title: by
// its own name, or by its place in the nearest element around it that has an id.
function keyOf(details, part) {
  const name = details.dataset.key ?? details.dataset.file ?? details.id;
  if (name) return name;
  const around = details.parentElement.closest("[id]") ?? part;
  return `${around.id}/${[...around.querySelectorAll("details")].indexOf(details)}`;
}
// sameIn finds in a new part what had the focus in the old one.
function sameIn(fresh, was, stale) {
  if (was.id) return fresh.querySelector(`#${CSS.escape(was.id)}`);
  if (was.matches("summary")) {
    const key = keyOf(was.parentElement, stale);
    return [...fresh.querySelectorAll("details")].find((details) => keyOf(details, fresh) === key)?.querySelector(":scope > summary");
  }
  const marks = (one) => ["name", "value", "href", "form", "data-pick-all"].map((name) => one.getAttribute(name)).join("\n") + one.closest("form")?.getAttribute("action");
  return [...fresh.querySelectorAll(was.localName)].find((one) => marks(one) === marks(was));
}

// Filters of lists are folded on narrow screens, and never on wide ones, where nothing unfolds them.
const narrow = matchMedia("(max-width: 45rem)");
function fold() {
  for (const one of document.querySelectorAll("[data-fold]")) one.open = !narrow.matches || one.dataset.fold === "false";
}
narrow.addEventListener("change", fold);
fold();

// Enter in a box of a list presses the first button of its form, which does nothing.
document.addEventListener("submit", (event) => {
  if (event.submitter?.matches("[data-nothing]")) event.preventDefault();
});

// A box in the head of a list picks all rows of the page, and shows whether all are picked.
function showPicked(root) {
  const boxes = [...root.querySelectorAll("input[name=pick]")];
  for (const all of root.querySelectorAll("[data-pick-all]")) {
    all.checked = boxes.length > 0 && boxes.every((box) => box.checked);
    all.indeterminate = !all.checked && boxes.some((box) => box.checked);
  }
}
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-pick-all]")) {
    for (const box of document.querySelectorAll("input[name=pick]")) box.checked = event.target.checked;
  }
  if (event.target.matches("[data-pick-all], [name=pick]")) showPicked(document);
});
showPicked(document); // browsers keep what was picked before a reload

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
