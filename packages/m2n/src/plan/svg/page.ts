// SPDX-License-Identifier: Apache-2.0
// The frame of every picture: size, fonts, and colours that follow the reader's light or dark theme.

import { element, escapeXml, label } from './element.js';

const style = `
text{font:12px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:#24292f}
.title{font-size:16px;font-weight:600}.muted{fill:#656d76}.end{text-anchor:end}.middle{text-anchor:middle}
.page{fill:#ffffff}.frame{fill:none;stroke:#d0d7de}.empty{fill:#f6f8fa}.tile{stroke:#ffffff;stroke-width:.75}.heat{fill:#0969da}
.on{fill:#ffffff;font-size:11px;text-anchor:middle}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.muted{fill:#8d96a0}.page{fill:#0d1117}.frame{stroke:#30363d}
.empty{fill:#161b22}.tile{stroke:#0d1117}.heat{fill:#4493f8}.on{fill:#ffffff}}`;

export interface PageInput {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  readonly subtitle: string;
  readonly body: readonly string[];
}

/** Height that title and subtitle take. */
export const headHeight = 64;
export const margin = 24;

/** A complete SVG document; it loads nothing. */
export function page({ width, height, title, subtitle, body }: PageInput): string {
  const svg = element(
    'svg',
    { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img' },
    [
      element('title', {}, [escapeXml(title)]),
      element('style', {}, [style]),
      element('rect', { class: 'page', width, height }),
      label(margin, 30, title, 'title'),
      label(margin, 50, subtitle, 'muted'),
      ...body,
    ],
  );
  return `${svg}\n`;
}
