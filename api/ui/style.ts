import { ok, type Result } from "../model/result.ts";
import type { Reply } from "../routes/route.ts";

const STYLE = `:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6472; --paper: #fbfbf9; --card: #fff; --line: #dfe2e6; --accent: #0b6b58; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --soft: #98a2b1; --paper: #12161c; --card: #191f27; --line: #2c343f; --accent: #58c7ab; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header, main, footer { max-width: 74rem; margin: 0 auto; padding: 1rem 1.25rem; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; align-items: baseline; border-bottom: 1px solid var(--line); }
header strong { font-size: 1.15rem; letter-spacing: .01em; }
header nav { display: flex; gap: 1rem; margin-left: auto; }
h1 { font-size: 1.3rem; margin: 1rem 0 .5rem; }
h2 { font-size: 1.08rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
a { color: var(--accent); }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
p { max-width: 46rem; margin: .5rem 0; }
.soft, footer { color: var(--soft); }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: .4rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem; border-bottom: 1px solid var(--line); }
tr:last-child > td { border-bottom: 0; }
th { font-weight: 600; color: var(--soft); white-space: nowrap; }
td.num { text-align: right; font-variant-numeric: tabular-nums; }
code, pre { font: .92em/1.45 ui-monospace, monospace; }
td code { white-space: nowrap; }
pre { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .75rem 1rem; }
.method { display: inline-block; min-width: 3.4rem; font-weight: 600; color: var(--accent); }
:target { outline: 2px solid var(--accent); outline-offset: 3px; }
`;

/** GET /style.css: the only style sheet of all pages. */
export const getStyle = (): Result<Reply, never> => ok({ status: 200, type: "text/css; charset=utf-8", body: STYLE });
