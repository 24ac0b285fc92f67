// What the pictures are made of: boxes in the colour of the rank that a token comes from, and the frame around them.

import { element, escapeXml, label } from '../../packages/m2n/dist/plan/svg/element.js';
import { margin, page } from '../../packages/m2n/dist/plan/svg/page.js';

export { element, label, margin };

/** Strong enough for white text on light and dark pages. */
const style = `
.from0{fill:#0969da}.from1{fill:#bc4c00}.from2{fill:#1a7f37}.line0{stroke:#0969da}.line1{stroke:#bc4c00}.line2{stroke:#1a7f37}
.line{fill:none;stroke-opacity:.75}.unwritten{fill:none;stroke:#8c959f;stroke-dasharray:3 3}.padding{fill:url(#hatch);stroke:#8c959f}
.small{font-size:10px}.ids{font-size:9px;text-anchor:middle;fill:#ffffff}.strong{font-weight:600}`;

const hatch = element('pattern', { id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse' }, [
  element('path', { d: 'M0 6L6 0', stroke: '#8c959f', 'stroke-width': 1 }),
]);

export function picture({ width, height, title, subtitle, body }) {
  const head = [element('style', {}, [style]), element('defs', {}, [hatch])];
  return page({ width, height, title, subtitle, body: [...head, ...body] });
}

/** A token: its number, and below it the experts it wants here, if that is known. */
export function tokenBox({ x, y, width, height, source, text, ids = '', hint }) {
  const box = { x, y, width, height, rx: 3, class: `from${source}` };
  const middle = x + width / 2;
  const rect = element('rect', box, hint === undefined ? [] : [element('title', {}, [escapeXml(hint)])]);
  if (ids === '') return [rect, label(middle, y + height / 2 + 4, text, 'on')];
  return [rect, label(middle, y + height / 2 - 1, text, 'on'), label(middle, y + height - 4, ids, 'ids')];
}

/** A row that holds no token. */
export function emptyBox({ x, y, width, height, kind }) {
  return element('rect', {
    x: x + 0.5,
    y: y + 0.5,
    width: width - 1,
    height: height - 1,
    rx: 3,
    class: kind,
  });
}

/** Colours and what they mean, from left to right. */
export function legend(x, y, kinds) {
  const out = [];
  let at = x;
  for (const { text, source, kind } of kinds) {
    const box = { x: at, y, width: 14, height: 14 };
    out.push(
      source === undefined
        ? emptyBox({ ...box, kind })
        : element('rect', { ...box, rx: 3, class: `from${source}` }),
      label(at + 20, y + 11, text, 'muted'),
    );
    at += 34 + 6.6 * text.length;
  }
  return out;
}
