// SPDX-License-Identifier: Apache-2.0
// The look of the report, light and dark.

import { Html } from './html.js';

export const styleSheet: Html = new Html(`
:root {
  --page: #f6f7f9; --card: #ffffff; --text: #1b1f24; --soft: #5b6673; --line: #e1e5ea;
  --accent: #2f6fde; --good: #1a7f4b; --good-soft: #e3f4ea; --warn: #9a6200; --warn-soft: #fdf2dc;
  --c1: #7a8aa0; --c2: #4c9f94; --c3: #b08cd9; --c4: #2f6fde; --c5: #d9843b;
  --shadow: 0 1px 2px rgb(20 30 50 / 6%), 0 4px 16px rgb(20 30 50 / 5%);
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #111418; --card: #1a1f26; --text: #e6eaef; --soft: #98a4b3; --line: #2c343e;
    --accent: #6ea0ff; --good: #5ccb91; --good-soft: #16301f; --warn: #e5b45a; --warn-soft: #352913;
    --c1: #8494aa; --c2: #5cb8ab; --c3: #bd9ee6; --c4: #6ea0ff; --c5: #e59a57;
    --shadow: none;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
header, main { max-width: 1120px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 36px; padding-bottom: 8px; }
main { display: grid; gap: 20px; padding-bottom: 56px; grid-template-columns: minmax(0, 1fr); }
p, h1, h2, ul, dl, figure { margin: 0; padding: 0; }
.brand { color: var(--accent); font-weight: 600; letter-spacing: .02em; }
h1 { font-size: 30px; line-height: 1.2; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin-bottom: 12px; }
h2 small { color: var(--soft); font-weight: 400; margin-left: 6px; }
small { font-size: 13px; color: var(--soft); }
code { font: 13px/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.route { font-size: 17px; margin: 8px 0 20px; display: flex; flex-wrap: wrap; gap: 10px; align-items: center; }
.arrow { color: var(--soft); }
.badge { font-size: 13px; font-weight: 600; padding: 2px 10px; border-radius: 99px; }
.badge.good { color: var(--good); background: var(--good-soft); }
.badge.warn { color: var(--warn); background: var(--warn-soft); }
section:not(.tiles):not(.sides), .card, .tile { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 20px; box-shadow: var(--shadow); }
.tiles { display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); }
.tile { padding: 16px; }
.tile .name { color: var(--soft); font-size: 13px; }
.tile .value { font-size: 25px; font-weight: 650; letter-spacing: -.01em; line-height: 1.3; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile.good .value { color: var(--good); } .tile.warn .value { color: var(--warn); }
.note { color: var(--soft); font-size: 13px; line-height: 1.4; }
section > .note { margin-top: 12px; }
.phases { display: flex; height: 26px; border-radius: 7px; overflow: hidden; gap: 2px; background: var(--card); }
.phases span { flex-basis: 3px; flex-shrink: 0; }
.p-plan { background: var(--c1); } .p-load { background: var(--c2); } .p-prepare { background: var(--c3); } .p-pause { background: var(--warn); } .p-move { background: var(--c4); } .p-publish { background: var(--good); } .p-check { background: var(--c5); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 22px; margin-top: 12px; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 7px; }
.sides { display: grid; grid-template-columns: minmax(0, 1fr) auto minmax(0, 1fr); gap: 14px; align-items: center; }
.sides .arrow { font-size: 24px; }
.card h2 code { font-size: 15px; color: var(--accent); margin-left: 4px; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 5px 20px; }
dt { color: var(--soft); } dd { margin: 0; font-variant-numeric: tabular-nums; }
.picture { overflow-x: auto; }
.picture svg { max-width: 100%; height: auto; display: block; margin: 0 auto; }
.picture .page { fill: none; }
.figures { display: grid; gap: 8px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 6px 14px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--soft); font-weight: 500; font-size: 13px; }
.n { text-align: right; white-space: nowrap; } th.n { white-space: normal; }
tbody tr:last-child td, .bars tr:last-child > * { border-bottom: 0; }
.bars { margin-top: 12px; } .bars th { width: 1%; white-space: nowrap; font-weight: 500; color: var(--soft); }
.bar { display: flex; align-items: center; gap: 8px; margin: 2px 90px 2px 0; }
.bar span { height: 11px; border-radius: 3px; min-width: 2px; flex-shrink: 0; } .bar small { white-space: nowrap; }
.b-sent { background: var(--c4); } .b-received { background: var(--c2); } .b-local { background: var(--c1); }
@media (max-width: 720px) { .sides { grid-template-columns: minmax(0, 1fr); justify-items: center; } .sides .card { width: 100%; } .sides .arrow { transform: rotate(90deg); } }
@media print { body { background: #fff; } section { break-inside: avoid; } }
`);
