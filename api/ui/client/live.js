// Keeps the parts of a page that carry `data-live` as they would be if it were loaded again: told by server-sent events
// where the server keeps a response open, else by asking every few seconds.
import { furnish } from "/assets/page.js";

const POLL_MS = 5_000;
const SETTLE_MS = 400;
const MOST_WAIT_MS = 60_000;
const { liveNode } = document.body.dataset;

const state = document.createElement("span");
state.id = "live-state";
state.setAttribute("role", "status");
state.className = "tag";

function say(text, kind = "") {
  if (state.textContent === text) return;
  state.textContent = text;
  state.className = `tag ${kind}`.trim();
}

let shown;
let isWaiting = false;
/** Something was decided: the page is asked for again, once, however many decisions come together. */
function heard({ id }) {
  // the first time as well: something may have been decided since the page was made
  if (id === shown) return;
  shown = id;
  if (isWaiting) return;
  isWaiting = true;
  setTimeout(() => {
    isWaiting = false;
    refresh().catch(() => say("cannot be refreshed", "warn"));
  }, SETTLE_MS);
}

async function refresh() {
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (!response.ok) {
    gone(page);
    return;
  }
  for (const old of document.querySelectorAll("[data-live]")) replace(old, page.getElementById(old.id));
  furnish();
  document.dispatchEvent(new Event("nodewise:refreshed"));
}

/** What somebody writes in, or reads with its parts opened, stays as it is. */
function replace(old, fresh) {
  if (fresh === null || old.contains(document.activeElement)) return;
  for (const part of old.querySelectorAll("details[id][open]")) {
    fresh.querySelector(`details[id="${CSS.escape(part.id)}"]`)?.setAttribute("open", "");
  }
  if (!old.isEqualNode(fresh)) old.replaceWith(document.adoptNode(fresh));
}

/** What the page shows is no longer stored: said above it, and what was seen stays. */
function gone(page) {
  say("no longer stored", "bad");
  if (document.getElementById("gone") !== null) return;
  const note = document.createElement("p");
  note.id = "gone";
  note.className = "note bad";
  note.setAttribute("role", "alert");
  const why = page.querySelector("main p")?.textContent ?? "it cannot be loaded";
  note.textContent = `This page shows what was: ${why}`;
  document.querySelector("main h1").after(note);
}

const address = `/live?${new URLSearchParams(liveNode === "" ? {} : { node: liveNode })}`;

function listen() {
  const source = new EventSource(address);
  source.addEventListener("open", () => say("live", "good"));
  source.addEventListener("message", ({ data }) => heard(JSON.parse(data)));
  source.addEventListener("error", () => {
    say("reconnecting", "warn");
    if (source.readyState === EventSource.CLOSED) setTimeout(poll, POLL_MS);
  });
}

let pause = POLL_MS;
async function poll() {
  try {
    const response = await fetch(address, { headers: { accept: "application/json" } });
    if (!response.ok) throw new Error(response.statusText);
    const news = await response.json();
    heard(news);
    if (news.streams) return listen();
    say("asks every 5 s", "good");
    pause = POLL_MS;
  } catch {
    say("reconnecting", "warn");
    pause = Math.min(2 * pause, MOST_WAIT_MS);
  }
  setTimeout(poll, pause);
}

if (liveNode !== undefined) {
  document.querySelector("header nav").after(state);
  poll();
}
