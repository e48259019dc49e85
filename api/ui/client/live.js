// Keeps the parts of a page with `data-live` up to date: by server-sent events if the server keeps a response open,
// otherwise by polling every few seconds.
import { furnish, signInLink } from "/assets/page.js";

const POLL_MS = 5_000;
const SETTLE_MS = 400;
const SOON_MS = 3_000;
const MAX_WAIT_MS = 60_000;
const LOOK_MS = 60_000;
const { liveNode } = document.body.dataset;

const state = document.createElement("span");
state.id = "live-state";
state.setAttribute("role", "status");
state.className = "tag";

const LOST = "reconnecting";
const FAILED = "cannot be refreshed";
/** How the page receives changes; a faulty part of the page itself is reported first. */
let standing = ["connecting"];
let fault = null;
function found(wrong) {
  fault = wrong;
  say(...(fault ?? standing));
}
function stand(...status) {
  // a row that was pruned meanwhile is no change
  if (standing[0] === LOST && status[0] !== LOST) refresh();
  standing = status;
  found(status[0] === LOST && fault?.[0] === FAILED ? null : fault);
}
function say(text, kind = "") {
  if (state.textContent === text) return;
  state.textContent = text;
  state.className = `tag ${kind}`.trim();
}

let shown;
let isWaiting = false;
/** Reloads the page after a decision, once for all decisions that arrive together. */
function heard({ id, decidedAt }) {
  const newest = `${id} ${decidedAt}`;
  // also the first time: something may have been decided since the page was made
  if (newest === shown) return;
  shown = newest;
  if (isWaiting) return;
  isWaiting = true;
  setTimeout(() => {
    isWaiting = false;
    refresh();
  }, SETTLE_MS);
}

/** Loads the page again and replaces its live parts; after a failure it tries again. */
async function refresh() {
  try {
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (response.status === 404 || response.status === 410) gone(page);
    else if (response.status === 401) ended();
    else if (response.ok) show(page);
    else throw new Error(response.statusText);
  } catch {
    if (standing[0] !== LOST) found([FAILED, "warn"]);
    clearTimeout(again);
    again = setTimeout(refresh, POLL_MS);
  }
}
let again;

function show(page) {
  found(null);
  document.getElementById("ended")?.remove();
  isBehind = false;
  for (const old of document.querySelectorAll("[data-live]")) replace(old, page.getElementById(old.id));
  furnish();
  document.dispatchEvent(new Event("nodewise:refreshed"));
}

/** True: the part with the focus was not updated, and is when the focus moves. */
let isBehind = false;
document.addEventListener("focusout", () => {
  if (isBehind) setTimeout(refresh);
});

/** Replaces a part, unless the user types in it or has opened parts of it; a link keeps the focus. */
function replace(old, fresh) {
  if (fresh === null || old.isEqualNode(fresh)) return;
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const href = focused?.getAttribute("href") ?? null;
  const twin = href === null ? undefined : fresh.querySelector(`a[href="${CSS.escape(href)}"]`);
  if (focused !== null && !twin) {
    isBehind = true;
    return;
  }
  for (const part of old.querySelectorAll("details[id][open]")) {
    fresh.querySelector(`details[id="${CSS.escape(part.id)}"]`)?.setAttribute("open", "");
  }
  if (old.isEqualNode(fresh)) return;
  old.replaceWith(document.adoptNode(fresh));
  twin?.focus({ preventScroll: true });
}

/** The page's row is no longer stored: a note above says so, and the page stays. */
function gone(page) {
  found(["no longer stored", "bad"]);
  const why = page.querySelector("main p")?.textContent ?? "it cannot be loaded";
  note("gone", `This page is not current: ${why}`);
}
/** The session has ended; signing in on another page continues this one. */
function ended() {
  found(["signed out", "bad"]);
  note("ended", "This page is not current: this browser’s session has ended. ", signInLink(), " to go on here.");
}
function note(id, ...words) {
  if (document.getElementById(id) !== null) return;
  const message = document.createElement("p");
  message.id = id;
  message.className = "note bad";
  message.setAttribute("role", "alert");
  message.append(...words);
  document.querySelector("main h1").after(message);
}

const address = `/live?${new URLSearchParams(liveNode === "" ? {} : { node: liveNode })}`;
const channel = new BroadcastChannel(address);
/** Pages of one node share one stream, since a browser has few connections per server. */
channel.addEventListener("message", ({ data: { news, status, isNew } }) => {
  if (news !== undefined) heard(news);
  if (status !== undefined) stand(...status);
  if (isNew && isHearing) channel.postMessage({ status: standing });
});
/** True: this page has the stream for the others. */
let isHearing = false;
function report(...status) {
  isHearing = true;
  stand(...status);
  channel.postMessage({ status });
}
function pass(news) {
  heard(news);
  channel.postMessage({ news });
}

/** The maximum number of streams to one server; other pages poll. */
const MAX_STREAMS = 3;
const [free, lock] =
  navigator.locks === undefined
    ? [(_name, work) => work(true), (_name, work) => work()]
    : [
        (name, work) => navigator.locks.request(name, { ifAvailable: true }, work),
        (name, work) => navigator.locks.request(name, work),
      ];

/** Listens as long as the page exists; ends when the stream ends for good. */
function stream() {
  return new Promise((ended) => {
    const source = new EventSource(address);
    source.addEventListener("open", () => report("live", "good"));
    source.addEventListener("message", ({ data }) => pass(JSON.parse(data)));
    source.addEventListener("error", () => {
      // the server itself ends a stream from time to time
      setTimeout(() => {
        if (source.readyState !== EventSource.OPEN) report(LOST, "warn");
      }, SOON_MS);
      if (source.readyState === EventSource.CLOSED) ended();
    });
  });
}

/** Resolves when the stream has ended, with whether one of the few streams was free for this page. */
async function streamed() {
  for (let slot = 0; slot < MAX_STREAMS; slot++) {
    const had = await free(`nodewise stream ${slot}`, async (held) => {
      if (held === null) return false;
      await stream();
      return true;
    });
    if (had) return true;
  }
  return false;
}

const pauseFor = (ms) => new Promise((done) => setTimeout(done, ms));
/** Polls until the page may have a stream. */
async function ask() {
  let pause = POLL_MS;
  for (;;) {
    try {
      const response = await fetch(address, { headers: { accept: "application/json" } });
      if (response.status === 401) refresh();
      if (!response.ok) throw new Error(response.statusText);
      const news = await response.json();
      pass(news);
      // changes after the end of a stream are found by polling
      if (!(news.streams && (await streamed()))) report("asks every 5 s", "good");
      pause = POLL_MS;
    } catch {
      report(LOST, "warn");
      pause = Math.min(2 * pause, MAX_WAIT_MS);
    }
    await pauseFor(pause);
  }
}

if (liveNode !== undefined) {
  document.querySelector("header nav").after(state);
  found(null);
  channel.postMessage({ isNew: true });
  lock(`nodewise ${address}`, ask);
  // a row that is no longer stored is no change of its node
  setInterval(() => {
    if (!document.hidden) refresh();
  }, LOOK_MS);
}
