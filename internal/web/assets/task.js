// Makes the page of a task live: the journal grows, times pass, and what is long is fetched when it is
// opened. Everything can be read without it.

export function start(task, { listen, refresh, localTimes, merges }) {
  const path = task.dataset.task;
  const journal = document.querySelector("[data-journal]");

  function countSeconds() {
    for (const time of document.querySelectorAll("time[data-since]")) {
      const seconds = Math.max(0, Math.floor((Date.now() - new Date(time.dateTime)) / 1000));
      if (isNaN(seconds)) continue;
      time.textContent = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    }
  }
  countSeconds();
  setInterval(countSeconds, 1000);

  // What is too long for the page is fetched when it is opened: the part that its place names of what
  // its link leads to. It takes the place of that, or of what is there now.
  async function load(place, stale = () => place) {
    if (place.dataset.loading) return;
    place.dataset.loading = "true";
    try {
      const address = new URL(place.querySelector("a").href);
      address.searchParams.set("part", place.dataset.load);
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      if (!answer.ok || answer.redirected) return;
      const made = document.createElement("div");
      made.innerHTML = await answer.text();
      localTimes(made);
      stale()?.replaceWith(made);
    } catch {
      // The link is still there.
    } finally {
      delete place.dataset.loading;
    }
  }
  document.addEventListener("toggle", (event) => {
    if (!event.target.open) return;
    for (const place of event.target.querySelectorAll("[data-load]")) {
      if (place.closest("details") === event.target) load(place);
    }
  }, true);

  // When more was saved, files that are as they were stay as they are on the page, with the focus and
  // where they are scrolled to; of others the old diff stays until the new one is there.
  function mergeFiles(stale, fresh) {
    const files = (part) => [...part.querySelectorAll(":scope > .file")];
    if (files(stale).length === 0 || files(fresh).length === 0) return stale.replaceWith(fresh);
    const named = new Set(files(fresh).map((file) => file.dataset.file));
    const known = new Map(files(stale).map((file) => [file.dataset.file, file]));
    for (const other of [...stale.childNodes]) if (!named.has(other.dataset?.file)) other.remove();
    let place = stale.firstChild; // before which everything is as it should be
    for (const next of [...fresh.children]) {
      const file = known.get(next.dataset.file);
      if (file) mergeFile(file, next);
      if (file && file === place) place = place.nextSibling;
      else stale.insertBefore(file ?? next, place);
    }
  }
  function mergeFile(file, next) {
    if (file.dataset.version === next.dataset.version) return;
    file.dataset.version = next.dataset.version;
    file.querySelector(":scope > summary").innerHTML = next.querySelector(":scope > summary").innerHTML;
    const version = file.dataset.version;
    const place = next.querySelector(":scope > .load");
    if (!place) return file.replaceChildren(...next.childNodes); // the page has the diff in it
    if (file.lastElementChild.matches(".load, summary")) return;
    if (file.open) load(place, () => file.dataset.version === version ? file.lastElementChild : null);
    else file.lastElementChild.replaceWith(place);
  }
  merges.set("changes", mergeFiles);

  // What is around the journal is fetched anew when an entry says that it has changed.
  const around = ["state", "phase", "plan", "receipt", "signal", "usage", "saved"];
  // The first is at once; what follows it closely shares the next request.
  let last = 0;
  let parts = 0;
  function changed(kind) {
    if (!around.includes(kind) || parts) return;
    parts = setTimeout(() => {
      parts = 0;
      last = performance.now();
      refreshParts();
    }, Math.max(0, last + 250 - performance.now()));
  }
  function refreshParts() {
    const address = new URL(location.href);
    address.hash = "";
    address.searchParams.set("parts", "");
    refresh(address);
  }
  // What the server is still reading is in the page when it is asked again.
  setInterval(() => {
    if (document.querySelector("[data-again]")) refreshParts();
  }, 2000);
  const comments = () => changed("signal");
  if (journal?.dataset.follows === "true") return startJournal();
  listen(`${path}/live`, task.dataset.last, { entry: (data) => changed(JSON.parse(data).kind), comments });

  // The journal grows at its end, which stays in view until the reader scrolls up;
  // what is older is fetched when the reader gets there.
  function startJournal() {
    const follow = journal.querySelector("[data-follow]");
    const place = journal.querySelector("[data-now-place]");
    const atEnd = () => journal.scrollHeight - journal.scrollTop - journal.clientHeight < 60;
    const wanted = /^#e\d+$/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
    let following = !wanted;
    let loading = false;

    // Only a reader moves the journal up; it also moves when an entry changes its
    // height, and then the end is followed still. The scroll event of a busy page comes
    // late, so whatever leads to the end looks first whether the reader has left it.
    let top = 0;
    let height = journal.clientHeight;
    const resized = () => journal.clientHeight !== height; // see below
    const left = () => !resized() && !atEnd() && journal.scrollTop < top;
    const toEnd = () => {
      journal.scrollTop = journal.scrollHeight;
      top = journal.scrollTop;
    };
    journal.addEventListener("scroll", () => {
      if (resized()) return;
      if (atEnd()) following = true;
      else if (left()) following = false;
      top = journal.scrollTop;
      if (following) follow.hidden = true;
      if (journal.scrollTop < 300) older();
    });
    // Who opens or closes something reads it.
    journal.addEventListener("click", (event) => {
      if (event.target.closest("summary") && !atEnd()) following = false;
    });
    follow.addEventListener("click", () => {
      following = true;
      follow.hidden = true;
      toEnd();
    });

    async function older() {
      const first = journal.querySelector(".steps");
      const before = Number(first.dataset.earliest);
      if (loading || !(before > 1)) return;
      loading = true;
      try {
        const answer = await fetch(`${path}/journal?before=${before}`);
        if (!answer.ok) return;
        const text = await answer.text();
        const height = journal.scrollHeight;
        first.insertAdjacentHTML("beforebegin", text);
        if (first.previousElementSibling.dataset.earliest === "1") journal.querySelector(".older")?.remove();
        localTimes(first.previousElementSibling);
        dropEnded(first.previousElementSibling);
        if (!following) journal.scrollTop += journal.scrollHeight - height;
      } catch {
        // It is tried again at the next scroll.
      } finally {
        loading = false;
      }
    }

    // Of a call that ends in what was there already, the end has all that there was before.
    function dropEnded(piece) {
      for (const row of piece.querySelectorAll('.entry-tool[data-ended="false"], .entry.output')) {
        const call = row.dataset.call || row.dataset.of;
        if (!call) continue;
        const later = [...journal.querySelectorAll(`.entry-tool[data-call="${CSS.escape(call)}"]`)]
          .find((other) => row.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
        if (later?.dataset.ended === "true") row.remove();
      }
    }

    // Output that goes on is added to what is there.
    const longest = 256 * 1024;
    function addOutput(list, html) {
      const output = ".what > details > pre";
      const entry = list.lastElementChild?.matches(".entry.output") ? list.lastElementChild : null;
      const last = entry?.querySelector(output);
      if (!last || last.textContent.length > longest) return false;
      const made = document.createElement("template");
      made.innerHTML = html;
      const more = made.content.querySelector(output);
      if (!more || made.content.firstElementChild.dataset.of !== entry.dataset.of) return false;
      last.append(...more.childNodes);
      last.scrollTop = last.scrollHeight;
      return true;
    }

    // A call that has not ended when the run does was interrupted.
    function interrupt() {
      for (const call of journal.querySelectorAll('.entry-tool[data-ended="false"]')) {
        call.dataset.ended = "true";
        call.querySelector(".mark.running")?.classList.remove("running");
        const fact = call.querySelector(".fact");
        if (fact) fact.textContent = journal.dataset.interrupted;
      }
    }

    function add(data) {
      const entry = JSON.parse(data);
      if (left()) following = false;
      if (entry.kind === "state") interrupt();
      if (entry.html) {
        const list = [...journal.querySelectorAll(".steps > ol")].at(-1);
        if (entry.call) {
          // The end of a call has all that there was of it before.
          const id = CSS.escape(entry.call);
          for (const old of journal.querySelectorAll(`.entry[data-call="${id}"][data-ended="false"], .entry[data-of="${id}"]`)) old.remove();
        }
        if (!entry.output || !addOutput(list, entry.html)) list.insertAdjacentHTML("beforeend", entry.html);
        if (list.lastElementChild) localTimes(list.lastElementChild);
        if (!following) follow.hidden = false;
      }
      if (entry.now !== undefined) {
        place.innerHTML = entry.now;
        countSeconds();
      }
      if (following) toEnd();
      changed(entry.kind);
    }

    const sizes = new ResizeObserver(() => {
      if (left()) following = false;
      height = journal.clientHeight;
      if (following) toEnd();
    });
    sizes.observe(journal);
    for (const steps of journal.querySelectorAll(".steps")) sizes.observe(steps);
    if (wanted) wanted.scrollIntoView({ block: "center" });
    else toEnd();
    top = journal.scrollTop;
    listen(`${path}/live`, task.dataset.last, { entry: add, comments });
  }
}
