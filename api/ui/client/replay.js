// Runs a replay page by page without leaving it: posts the page's own form, replaces the last answer, and continues
// with the form in the new one. All counts are in that form, so the script stores nothing, a failed request can be
// repeated, and a stopped replay continues where it was.
import { furnish, signInLink } from "/assets/page.js";
import { watchSizes } from "/assets/sizes.js";

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30_000;
const byId = (id) => document.getElementById(id);

/** The running replay; null: none. */
let current = null;

document.addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  if (form.id !== "question" && form.id !== "go-on") return;
  // a single decision is one page
  if (submitter?.name === "only") return;
  // too large
  if (event.defaultPrevented) return;
  event.preventDefault();
  run(form);
});
document.addEventListener("click", ({ target }) => {
  if (target instanceof Element && target.closest("#stop") !== null) stop();
});

watchSizes(byId("question"));
updateAddress();

/** Puts the link of the answer's question into the address bar, if it is short enough. */
function updateAddress() {
  const { link } = byId("answer").dataset;
  if (link === undefined) return;
  const address = new URL((link || "/replay") + location.hash, location.href).href;
  // browsers limit how often this may be done
  if (address !== location.href) history.replaceState(history.state, "", address);
}

function say(text, tone = "") {
  byId("run").hidden = false;
  byId("stop").hidden = current === null;
  const state = byId("run-state");
  const className = `tag ${tone}`.trim();
  if (state.className !== className) state.className = className;
  if (state.textContent !== text) state.textContent = text;
}

function stop() {
  current?.abort();
  current = null;
  say("stopped: it can go on from here", "warn");
  delete document.body.dataset.replaying;
  byId("go-on")?.querySelector("button").focus();
}

async function run(form) {
  current?.abort();
  const control = new AbortController();
  current = control;
  const isFirst = form.id === "question";
  if (isFirst) byId("answer").replaceChildren();
  byId("rate").textContent = "";
  document.body.dataset.replaying = "";
  const began = performance.now();
  const before = isFirst ? 0 : passed();
  say("replaying", "good");
  if (isFirst) byId("run").scrollIntoView();
  let next = form;
  while (next !== null) {
    const reply = await ask(next, control.signal);
    if (control.signal.aborted) return;
    const answer = reply.page.getElementById("answer");
    if (!reply.ok || answer === null) return refused(reply);
    replace(byId("answer"), answer);
    next = byId("go-on");
    const seconds = (performance.now() - began) / 1000;
    byId("rate").textContent = `${Math.round((passed() - before) / seconds).toLocaleString("en")} decisions a second`;
    say("replaying", "good");
  }
  current = null;
  delete document.body.dataset.replaying;
  say("done", "good");
}

const passed = () => Number(byId("answer").querySelector("[data-passed]")?.dataset.passed ?? 0);

/** Opens the parts that were open in the last answer. */
function replace(old, fresh) {
  for (const part of old.querySelectorAll("details[id][open]")) {
    fresh.querySelector(`details[id="${CSS.escape(part.id)}"]`)?.setAttribute("open", "");
  }
  old.replaceWith(document.adoptNode(fresh));
  furnish();
  updateAddress();
}

/** Shows the server's error: at its field in the form, or the text of an error page. */
function refused({ status, page }) {
  current = null;
  delete document.body.dataset.replaying;
  const fresh = page.getElementById("content");
  if (page.getElementById("question") !== null) {
    byId("content").replaceWith(document.adoptNode(fresh));
    furnish();
    watchSizes(byId("question"));
    (byId("content").querySelector("[aria-invalid]") ?? byId("content")).focus();
    return;
  }
  const words = [...(fresh?.querySelectorAll("h1, h1 + p") ?? [])].map((part) => part.textContent.trim());
  say(words.join(": ") || "the server did not answer with a page", "bad");
  if (status === 401) byId("run-state").append(" ", signInLink());
}

/** Retries until there is an answer that a retry would not change. */
async function ask(form, signal) {
  const body = new FormData(form);
  for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
    let why;
    try {
      const response = await fetch("/replay", { method: "POST", body, signal, headers: { accept: "text/html" } });
      if (response.status < 500 && response.status !== 429 && response.status !== 408) {
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        return { ok: response.ok, status: response.status, page };
      }
      why = `the server answered ${response.status}`;
    } catch {
      why = "the server cannot be reached";
    }
    if (signal.aborted) break;
    say(`${why}; it is tried again`, "warn");
    await pause(wait, signal);
  }
  return { ok: false, page: document };
}

const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
