// Draws each signal's plot with uPlot in place of its picture, so that values can be read at the pointer. The picture stays for
// printing and if this fails.
/* global uPlot */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const HEIGHT = 170;

/** Amounts as the page writes them: `23.5 GiB`, or a number. */
function amountText(value, bytes) {
  if (value === null || value === undefined) return "–";
  if (!bytes) return String(Math.round(value));
  let size = value;
  let unit = 0;
  while (Math.abs(Math.round(size * 10) / 10) >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${Math.round(size * 10) / 10} ${UNITS[unit]}`;
}

const shortText = (count) =>
  count >= 1e6 ? `${Math.round(count / 1e5) / 10} M` : count >= 1e4 ? `${Math.round(count / 100) / 10} k` : `${count}`;

/** Hours in UTC, or days if they are further apart. */
function timeText(at, step) {
  const text = new Date(at * 1000).toISOString();
  if (step >= 86_400) return text.slice(5, 10);
  return text.slice(11, step < 60 ? 19 : 16);
}

/** The steps of an axis of bytes: 1, 2, 5 ... of a unit of 1024. */
const BYTE_STEPS = UNITS.flatMap((_, unit) => [1, 2, 5, 10, 20, 50, 100, 200, 500].map((n) => n * 1024 ** unit));

const colorOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A horizontal line for each limit, with its name at the right. */
function drawLimits(plot, limits) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colorOf("--bad");
  ctx.lineWidth = devicePixelRatio;
  for (const { value, soft } of limits) {
    const y = plot.valToPos(value, "y", true);
    ctx.setLineDash(soft ? [2 * devicePixelRatio, 3 * devicePixelRatio] : [6 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  ctx.restore();
}

const TONES = { bad: "--bad", warn: "--warn" };
const CLOSE = 16;

/** A vertical line for each action, with its number in the list below; close ones share a label. */
function drawActs(plot, acts) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const { min, max } = plot.scales.x;
  const last = plot.data[0].at(-1);
  // a decision after the last point is drawn at the end
  const placed = acts
    .map((act) => ({ ...act, at: Math.min(act.at, last) }))
    .filter(({ at }) => at >= min && at <= max)
    .map((act) => ({ ...act, x: plot.valToPos(act.at, "x", true) }));
  ctx.save();
  ctx.lineWidth = 1.5 * ratio;
  for (const { x, tone } of placed) {
    ctx.strokeStyle = colorOf(TONES[tone] ?? `--${tone}`);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  const groups = [];
  for (const act of placed) {
    const open = groups.at(-1);
    if (open !== undefined && act.x - open.at(-1).x < CLOSE * ratio) open.push(act);
    else groups.push([act]);
  }
  ctx.fillStyle = colorOf("--ink");
  ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  for (const group of groups) {
    const [first, last] = [group[0], group.at(-1)];
    const name = first === last ? `${first.number}` : `${first.number}–${last.number}`;
    ctx.fillText(name, (first.x + last.x) / 2, bbox.top - 3 * ratio);
  }
  ctx.restore();
}

function optionsOf({ signal, bytes, limits, acts }, width) {
  const axis = { stroke: colorOf("--soft"), grid: { stroke: colorOf("--line"), width: 1 }, ticks: { show: false } };
  const most = Math.max(0, ...limits.map(({ value }) => value));
  return {
    width,
    height: HEIGHT,
    // room for the labels above, and for half of the last time
    padding: [acts.length > 0 ? 16 : 8, 28, null, null],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: { y: { range: (_, _min, max) => [0, Math.max(max ?? 0, most) * 1.08 || 1] } },
    axes: [
      { ...axis, space: 64, size: 30, values: (_, ticks, __, ___, step) => ticks.map((at) => timeText(at, step)) },
      {
        ...axis,
        size: 68,
        space: 36,
        ...(bytes ? { incrs: BYTE_STEPS } : {}),
        values: (_, ticks) => ticks.map((value) => (bytes ? amountText(value, true) : shortText(value))),
      },
    ],
    series: [
      {
        label: "UTC",
        value: (_, at) => (at === null ? "–" : new Date(at * 1000).toISOString().slice(5, 19).replace("T", " ")),
      },
      {
        label: signal,
        stroke: colorOf("--accent"),
        width: 1.6,
        points: { show: false },
        value: (_, v) => amountText(v, bytes),
      },
    ],
    cursor: { drag: { x: true, y: false } },
    hooks: {
      draw: [
        (plot) => {
          drawLimits(plot, limits);
          drawActs(plot, acts);
        },
      ],
    },
  };
}

const drawn = new Map();

function draw(figure) {
  const block = figure.querySelector('script[type="application/json"]');
  const picture = figure.querySelector("svg.picture");
  // a folded plot has no width yet
  if (block === null || picture === null || figure.clientWidth === 0) return;
  const data = JSON.parse(block.textContent);
  const box = document.createElement("div");
  box.className = "live-plot";
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", picture.getAttribute("aria-label") ?? data.signal);
  picture.after(box);
  const plot = new uPlot(optionsOf(data, box.clientWidth), [data.times, data.values], box);
  figure.classList.add("has-plot");
  drawn.set(figure, { plot, box });
}

function drawAll() {
  for (const [figure, { plot, box }] of drawn) {
    if (figure.isConnected) continue;
    plot.destroy();
    box.remove();
    drawn.delete(figure);
  }
  for (const figure of document.querySelectorAll("figure.plot")) if (!drawn.has(figure)) draw(figure);
}

/** Colours are read when a plot is made. */
function drawAnew() {
  for (const [figure, { plot, box }] of drawn) {
    plot.destroy();
    box.remove();
    figure.classList.remove("has-plot");
  }
  drawn.clear();
  drawAll();
}

if (typeof uPlot === "function") {
  drawAll();
  document.addEventListener("nodewise:refreshed", drawAll);
  document.addEventListener("toggle", drawAll, true);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAnew);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const { plot, box } of drawn.values()) plot.setSize({ width: box.clientWidth, height: HEIGHT });
  });
}
