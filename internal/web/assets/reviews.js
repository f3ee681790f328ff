// Makes the pages about reviews live: the chat, and the form of a new review. Both work
// without it.

const { localTimes } = globalThis.toryo;

// longestQuote is how many letters of a section are put into a message.
const longestQuote = 200;

// readEvents reads server-sent events from the answer to a request.
async function readEvents(body, handle) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block);
      const data = /^data: (.*)$/m.exec(block);
      if (name && data) handle(name[1], JSON.parse(data[1]));
    }
  }
}

// send posts a form and hands on the events of the answer. It returns what the server says
// is wrong, or nothing, and whether the connection was lost before one of the last events.
async function send(address, body, last, otherwise, handle) {
  let ended = false;
  let problem = "";
  try {
    const answer = await fetch(address, { method: "POST", body, headers: { Accept: "text/event-stream" } });
    if (!answer.ok) return { problem: (await whatIsWrong(answer)) || otherwise, lost: false };
    await readEvents(answer.body, (name, data) => {
      if (last.includes(name)) ended = true;
      if (name === "problem") problem = data.text || otherwise;
      else handle(name, data);
    });
  } catch {
    // The connection is lost.
  }
  return { problem, lost: !ended && !problem };
}

// newName is a name for what is sent, by which the server knows it again.
function newName() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// whatIsWrong is what a page about an error says.
async function whatIsWrong(answer) {
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const parts = [...page.querySelectorAll("main h1, main .detail")].map((e) => e.textContent.trim());
  return parts.join(": ");
}

// A section that an answer cites may be on another page of a long answer.
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#section-"]');
  if (!link || document.getElementById(link.hash.slice(1))) return;
  event.preventDefault();
  const there = new URL(location.href);
  there.searchParams.set("from", link.hash.slice("#section-".length));
  there.hash = link.hash;
  location.assign(there);
});

const chat = document.querySelector("[data-chat]");
if (chat) startChat();

function startChat() {
  const messages = document.getElementById("messages");
  const input = chat.elements.content;
  const button = chat.querySelector("[data-submit]");
  const context = chat.querySelector("[data-context]");
  const show = (element) => element?.scrollIntoView({ block: "nearest" });

  // A click on a section or a remark puts it into the message, where the cursor is, once.
  document.addEventListener("click", (event) => {
    const mark = event.target.closest("[data-cite], [data-quote]");
    if (!mark) return;
    event.preventDefault();
    const text = mark.dataset.cite ?? quoteOf(mark.closest(".section"));
    const there = placeOf(text);
    if (there >= 0) {
      const end = Math.min(there + text.length + 1, input.value.length);
      input.setSelectionRange(end, end);
    } else {
      const at = input.selectionStart;
      const before = input.value.slice(0, at);
      const gap = before && !/\s$/.test(before) ? " " : "";
      input.setRangeText(`${gap}${text} `, at, input.selectionEnd, "end");
    }
    input.focus();
    show(input);
  });
  // A section is quoted by its beginning.
  function quoteOf(section) {
    const letters = [...section.querySelector(".text, .code").textContent.trim().replace(/\s+/g, " ")];
    const text = letters.length > longestQuote ? letters.slice(0, longestQuote - 1).join("") + "…" : letters.join("");
    const name = section.querySelector("[data-cite]").dataset.cite;
    return chat.dataset.quoted.replace("{section}", () => name).replace("{text}", () => text);
  }
  // §1 is not in §12.
  function placeOf(text) {
    for (let at = input.value.indexOf(text); at >= 0; at = input.value.indexOf(text, at + 1)) {
      if (!/\d$/.test(text) || !/\d/.test(input.value[at + text.length] ?? "")) return at;
    }
    return -1;
  }
  for (const hidden of document.querySelectorAll("button[data-cite][hidden]")) hidden.hidden = false;

  // parsed are the messages of a piece of a page.
  function parsed(html) {
    const shape = document.createElement("template");
    shape.innerHTML = html;
    return [...shape.content.querySelectorAll("[data-message]")];
  }

  // put shows a message as the server has it now, in place of what is shown of it, or after the
  // one that comes before it if that is known.
  function put(fresh, previous) {
    const stale = messages.querySelector(`[data-message="${CSS.escape(fresh.dataset.message)}"]`);
    if (stale) stale.replaceWith(fresh);
    else if (previous) previous.after(fresh);
    else messages.append(fresh);
    localTimes(fresh);
    return fresh;
  }

  function waiting() {
    const draft = document.createElement("article");
    draft.className = "message assistant";
    const text = draft.appendChild(document.createElement("pre"));
    text.className = "coming";
    const sign = draft.appendChild(document.createElement("p"));
    sign.className = "thinking";
    sign.setAttribute("role", "status");
    sign.textContent = chat.dataset.thinking;
    return { draft, text, sign };
  }

  // What is sent has a name, so that it is one message however often it is sent.
  let sending = { said: "", name: "" };

  async function ask(said) {
    if (button.disabled) return;
    button.disabled = true;
    if (sending.said !== said) sending = { said, name: newName() };
    const body = new URLSearchParams(new FormData(chat));
    body.set("key", sending.name);
    const { draft, text, sign } = waiting();
    messages.append(draft);
    show(draft);
    let asked = null;
    let page = "";
    const { problem, lost } = await send(chat.action, body, ["message", "made"], chat.dataset.problem, (name, data) => {
      if (name === "asked") {
        messages.querySelector("[data-wrong]")?.remove();
        asked = put(parsed(data.html)[0]);
        setSign(asked, false);
        messages.append(draft);
        if (input.value === said) input.value = "";
        goOn(data);
      } else if (name === "delta") {
        if (data.restart) text.textContent = "";
        text.textContent += data.text ?? "";
        sign.hidden = text.textContent !== "";
      } else if (name === "message") {
        draft.remove();
        answered(asked);
        put(parsed(data.html)[0]);
      } else if (name === "made") {
        page = data.page;
      }
      show(messages.lastElementChild);
    });
    if (page) return reload(page);
    button.disabled = false;
    if (!problem && !lost) {
      sending = { said: "", name: "" };
      button.textContent = chat.dataset.send;
    } else if (lost && asked) {
      // The server goes on with the answer.
      sending = { said: "", name: "" };
      button.textContent = chat.dataset.send;
      draft.remove();
      setSign(asked, true);
      startLooking();
    } else {
      answered(asked);
      sayWrong(draft, said, lost ? chat.dataset.lost : asked ? `${chat.dataset.unanswered} ${problem}` : problem);
    }
  }

  // sayWrong says why there is no answer. What was said stays in the box, unless something
  // else is there by now.
  function sayWrong(draft, said, text) {
    button.textContent = chat.dataset.again;
    if (!input.value.trim()) input.value = said;
    messages.querySelector("[data-wrong]")?.remove();
    const wrong = document.createElement("p");
    wrong.className = "failure";
    wrong.dataset.wrong = "";
    wrong.setAttribute("role", "alert");
    wrong.textContent = text;
    draft.replaceWith(wrong);
    show(wrong);
  }

  // reload shows the page on which the answer stands that was there already.
  function reload(page) {
    input.value = "";
    history.replaceState(null, "", page);
    location.reload();
  }

  // setSign shows at a message that its answer is on its way, or hides that.
  function setSign(message, shown) {
    const sign = message?.querySelector("[data-answering]");
    if (sign) sign.hidden = !shown;
  }

  function answered(message) {
    message?.querySelector("[data-answering]")?.remove();
  }

  // goOn says where the conversation is, which may have begun with the message.
  function goOn(asked) {
    const action = new URL(asked.action, location.href).href;
    if (chat.action === action) return;
    chat.action = action;
    context.href = asked.action.replace(/messages$/, "context");
    context.hidden = false;
    chat.querySelector("[data-first]")?.remove();
    history.replaceState(null, "", asked.page);
  }

  chat.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim()) ask(input.value);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) chat.requestSubmit();
  });
  context.addEventListener("click", () => {
    const address = new URL(context.href);
    address.search = `?input=${encodeURIComponent(input.value)}`;
    context.href = address.href;
  });

  // An answer that is on its way without a connection of this page is looked for, at first
  // often and then less so. Only what is new is put into the page: whoever reads, by eye or
  // by ear, is left alone.
  const firstLook = 1000;
  const longestLook = 15000;
  let looking = 0;

  function startLooking() {
    clearTimeout(looking);
    looking = setTimeout(look, firstLook, firstLook);
  }

  async function look(waited) {
    const sign = messages.querySelector("[data-answering]:not([hidden])");
    if (!sign) return;
    try {
      if (!(await lookFor(sign.closest("[data-message]")))) return;
    } catch {
      // The connection is lost; it is tried again.
    }
    const wait = Math.min(waited * 1.5, longestLook);
    looking = setTimeout(look, wait, wait);
  }

  // lookFor reports whether it makes sense to look again: not if the conversation is gone, or
  // the reader is signed out.
  async function lookFor(message) {
    const { thread, message: id } = message.dataset;
    const answer = await fetch(`/threads/${encodeURIComponent(thread)}/messages?from=${encodeURIComponent(id)}`, { headers: { Accept: "text/html" } });
    if (answer.status === 404 || answer.redirected) {
      answered(message); // nothing comes any more that could be shown
      return false;
    }
    if (!answer.ok || button.disabled) return true;
    const atEnd = messages.scrollHeight - messages.scrollTop - messages.clientHeight < 40;
    let previous = null;
    for (const fresh of parsed(await answer.text())) {
      const shown = messages.querySelector(`[data-message="${CSS.escape(fresh.dataset.message)}"]`);
      if (shown && fresh.dataset.state === "answered") answered(shown);
      previous = !shown || fresh.dataset.state === "unanswered" ? put(fresh, previous) : shown;
    }
    if (atEnd) messages.scrollTop = messages.scrollHeight;
    return true;
  }
  startLooking();

  if (messages.querySelector(".message")) messages.scrollTop = messages.scrollHeight;
  if (input.value) input.setSelectionRange(input.value.length, input.value.length);
}

const making = document.querySelector("[data-making]");
if (making) startMaking();

function startMaking() {
  const button = making.querySelector("[data-submit]");
  const sign = making.querySelector("[data-sign]");
  const failure = making.querySelector("[data-failure]");
  making.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    failure.hidden = true;
    const began = Date.now();
    const tick = () => { sign.textContent = `${making.dataset.busy} ${Math.round((Date.now() - began) / 1000)} s`; };
    tick();
    const clock = setInterval(tick, 1000);
    let page = "";
    const { problem } = await send(making.action, new FormData(making), ["made"], making.dataset.problem, (name, data) => {
      if (name === "made") page = data.page;
    });
    clearInterval(clock);
    if (page) return location.assign(page);
    button.disabled = false;
    sign.textContent = "";
    failure.textContent = problem || making.dataset.lost;
    failure.hidden = false;
    failure.scrollIntoView({ block: "center" });
  });
  // Whoever has an assessment is shown where it goes, and whoever pastes one wants it used.
  making.addEventListener("change", (event) => {
    if (event.target.name === "judge" && event.target.value === "json") making.elements.judgement.closest("details").open = true;
  });
  for (const name of ["judgement", "judgement_file"]) {
    making.elements[name].addEventListener("change", (event) => {
      if (event.target.value) making.elements.judge.value = "json";
    });
  }
}

// A review that the model is making is looked for until it is there, or has failed.
const judging = document.querySelector("[data-judging]");
if (judging) setTimeout(lookForReview, 1000, 1000);

async function lookForReview(waited) {
  try {
    const answer = await fetch(judging.dataset.judging);
    if (answer.ok && !answer.redirected && (await answer.text()) !== "judging") return location.reload();
  } catch {
    // The connection is lost; it is tried again.
  }
  const wait = Math.min(waited * 1.5, 15000);
  setTimeout(lookForReview, wait, wait);
}
