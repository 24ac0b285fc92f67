// SPDX-License-Identifier: Apache-2.0
// Builds XML text; whatever comes from names is escaped here and nowhere else.

/** An element with attributes and children that are XML already. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  children: readonly string[] = [],
): string {
  const list = Object.entries(attributes).map(
    ([key, value]) => ` ${key}="${escapeXml(attributeText(value))}"`,
  );
  return children.length === 0
    ? `<${name}${list.join('')}/>`
    : `<${name}${list.join('')}>${children.join('')}</${name}>`;
}

/** An SVG text element. */
export function label(x: number, y: number, text: string, kind: string): string {
  return element('text', { x, y, class: kind }, [escapeXml(text)]);
}

/** Text for use between tags or in attributes; characters that XML 1.0 does not allow become U+FFFD. */
export function escapeXml(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

function attributeText(value: string | number): string {
  return typeof value === 'number' ? String(Math.round(value * 100) / 100) : value;
}
