// SPDX-License-Identifier: Apache-2.0
// Turns a kernel's file into C++ that g++ compiles: launches become calls, and shared variables blocks of their CTA. Lines stay.
// node rewrite.mjs FROM TO
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { argv } from 'node:process';

const [, , from, to] = argv;

const rules = [
  // kernel<<<grid, block, shared, stream>>>(arguments)
  [/^(\s*)(\S.*?)<<<(.+?)>>>\(/gm, '$1::nccl_ext::simt::launch($2, {$3}, '],
  // extern __shared__ __align__(128) std::uint8_t name[];
  [
    /^(\s*)extern __shared__ (?:__align__\(\d+\) )?(\S+) (\w+)\[\];/gm,
    '$1$2* const $3 = ::nccl_ext::simt::dynamicShared<$2>();',
  ],
  // __shared__ Type name;
  [/^(\s*)__shared__ (\S+) (\w+);/gm, '$1$2& $3 = ::nccl_ext::simt::shared<$2>([] {});'],
];

let text = readFileSync(from, 'utf8');
for (const [pattern, replacement] of rules) text = text.replace(pattern, replacement);
const rest = text.replace(/\/\/.*/g, '').match(/<<<|\b__shared__\b/);
if (rest !== null) throw new Error(`${from}: ${rest[0]} in a form that this script does not know`);
mkdirSync(dirname(to), { recursive: true });
writeFileSync(to, `#line 1 ${JSON.stringify(from)}\n${text}`);
