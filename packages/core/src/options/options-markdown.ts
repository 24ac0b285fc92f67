// SPDX-License-Identifier: Apache-2.0
// The text of docs/options.md, made from the table of options.

import { optionNames, optionTable } from './option-table.js';

/** The whole document. */
export function optionsMarkdown(): string {
  const rows = optionNames.map((name) => {
    const { variable, kind, default: value, defaultText, ranksAgree, doc } = optionTable[name];
    const shown = defaultText ?? `\`${value}\``;
    return `| \`${name}\` | \`${variable}\` | ${kind.allowed} | ${shown} | ${ranksAgree ? 'yes' : 'no'} | ${doc} |`;
  });
  return `<!-- Made by \`npm run generate\` from packages/core/src/options/option-table.ts; change it there. -->

# Options

An option of a call (\`localWorld({ ranks: 4, timeoutMs: 5000 })\`) wins over its environment variable, and the variable
over the default. A variable that is set to the empty string counts as not set. A wrong value is an
\`ERR_INVALID_ARGUMENT\` that names the option or variable, the value and what is allowed; an unknown variable that starts with
\`NCCL_EXT_\` gives a warning. \`npx nccl-ext doctor\` shows the value of each option and where it came from.

"Ranks agree": all ranks of a world must hold the same value; ranks that differ get \`ERR_DISAGREEMENT\` naming the option.

| option | variable | value | default | ranks agree | meaning |
| --- | --- | --- | --- | --- | --- |
${rows.join('\n')}
`;
}
