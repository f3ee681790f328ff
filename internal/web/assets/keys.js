// Keyboard shortcuts: / searches, g and a letter goes somewhere, ? shows them. They can be
// switched off, since a single key may be pressed by mistake, or be one of another program.

const dialog = document.getElementById("keys");
const use = dialog.querySelector("[data-use]");
const places = new Map();
for (const link of document.querySelectorAll(".bar nav a[data-key]")) {
  if (link.dataset.key) places.set(link.dataset.key, link);
}

// A browser may forbid a site to keep anything.
function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}
function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // It holds for this page only.
  }
}
use.checked = kept("toryo.keys") !== "off";
use.addEventListener("change", () => keep("toryo.keys", use.checked ? "on" : "off"));

const list = dialog.querySelector("dl");
for (const [key, link] of places) {
  const keys = document.createElement("dt");
  const parts = dialog.dataset.then.split(/(\{[01]\})/);
  for (const part of parts) {
    if (part === "{0}" || part === "{1}") keys.appendChild(document.createElement("kbd")).textContent = part === "{0}" ? "g" : key;
    else keys.append(part);
  }
  list.append(keys, Object.assign(document.createElement("dd"), { textContent: link.textContent }));
}

const opener = document.querySelector("[data-show-keys]");
opener.hidden = false;
opener.addEventListener("click", () => dialog.showModal());
dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close(); // beside it
});

// The field for searching, which may be in something that is folded.
function search() {
  const field = document.querySelector("main [data-search]") ?? document.querySelector("main input[type=search]");
  if (!field) {
    location.href = "/queue#search";
    return;
  }
  for (let around = field.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
  field.focus();
  field.select();
}
if (location.hash === "#search") search();

function typing(target) {
  return target instanceof Element && (target.closest("input, textarea, select, dialog") || target.isContentEditable);
}

const patience = 2000; // milliseconds between g and the letter
let gone = -Infinity; // when g was pressed
document.addEventListener("keydown", (event) => {
  if (!use.checked || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return;
  if (typing(event.target) || dialog.open) return;
  const after = event.timeStamp - gone < patience;
  gone = -Infinity;
  if (after && places.has(event.key)) {
    event.preventDefault();
    places.get(event.key).click();
    return;
  }
  if (event.key === "g") gone = event.timeStamp;
  else if (event.key === "/") search();
  else if (event.key === "?") dialog.showModal();
  else return;
  event.preventDefault();
});
