// Puts the tables that check calls of expert parallelism into docs/ep-reference.md, between its marks.

import { quantizationRules } from '../packages/ep/dist/fields/quantization-rules.js';
import { fieldMatrix } from '../packages/ep/dist/index.js';

const layouts = Object.keys(fieldMatrix);
const dtypeText = {
  payload: "the group's dtype",
  tokens: 'as the quantization says',
  rows: 'as the quantization says',
  scale: 'as the quantization says',
  f32: 'f32',
  index: 'i32 or i64',
};

const tables = {
  route: fieldsOf('route'),
  dispatch: fieldsOf('dispatch'),
  combine: fieldsOf('combine'),
  quantization,
};

/** `document` with every `<!-- table: name -->` region made anew. */
export function withTables(document) {
  return document.replace(
    /(<!-- table: (\w+)[^>]*-->\n)[\s\S]*?(<!-- end of table -->)/g,
    (_, begin, name, end) => `${begin}\n${tables[name]()}\n\n${end}`,
  );
}

function fieldsOf(operation) {
  return () =>
    ['forward', 'backward']
      .filter((pass) => layouts.some((layout) => fieldMatrix[layout][operation][pass] !== undefined))
      .map((pass) => passTable(operation, pass))
      .join('\n\n');
}

function passTable(operation, pass) {
  const rulesOf = (layout) => fieldMatrix[layout][operation][pass] ?? [];
  const having = layouts.filter((layout) => rulesOf(layout).length > 0);
  const fields = [...new Set(having.flatMap((layout) => rulesOf(layout).map(({ field }) => field)))];
  const rows = fields.map((field) => {
    const found = having.map((layout) => rulesOf(layout).find((rule) => rule.field === field));
    const { dtype } = found.find((rule) => rule !== undefined);
    return `| \`${field}\` | ${dtypeText[dtype]} | ${found.map(cell).join(' | ')} |`;
  });
  const heads = ['field', 'dtype', ...having];
  const title = operation === 'route' ? '' : `${pass}:\n\n`;
  return `${title}| ${heads.join(' | ')} |\n|${'---|'.repeat(heads.length)}\n${rows.join('\n')}`;
}

function cell(rule) {
  if (rule === undefined) return '';
  const { presence, shape } = rule;
  return `${presence === 'scales' ? 'with scales' : presence} [${shape.join(', ')}]`;
}

function quantization() {
  const scalesText = { none: 'none', made: 'made: `out.scales`', forwarded: 'forwarded, or none' };
  const list = (dtypes, otherwise) => dtypes?.join(', ') ?? otherwise;
  const rows = Object.entries(quantizationRules).map(([name, { tokens, rows, scales, scaleDTypes, block }]) =>
    [
      `\`${name}\``,
      list(tokens, "the group's dtype"),
      rows ?? 'as the input',
      scalesText[scales],
      list(scaleDTypes) || '',
      block === undefined ? (scales === 'none' ? '' : 'any') : `H / ${block}`,
    ].join(' | '),
  );
  return `| quantization | input rows | output rows | scales | dtype of scales | scales per row |\n|${'---|'.repeat(6)}\n${rows.map((row) => `| ${row} |`).join('\n')}`;
}
