// SPDX-License-Identifier: Apache-2.0
// Makes a CUDA library small enough to carry to one known GPU: zeroes the device code of every other architecture, so that the file
// keeps its layout, loads as before and compresses to a fraction. Never for publishing.
// node third_party/slim-fatbin.mjs <library> <output> <architecture, as 90>

import { readFileSync, writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';

/** First word of a fat binary (fatbinary_section.h of the CUDA toolkit). */
const fatbinMagic = 0xba55ed50;

/** Zeroes in place; returns the bytes of code kept and removed. Throws when there is none for `architecture`. */
export function slimFatbin(library, architecture) {
  let kept = 0;
  let removed = 0;
  for (const { name, start, end } of sectionsOf(library)) {
    // Input of the device linker, which nobody reads at run time.
    if (name === '__nv_relfatbin') {
      library.fill(0, start, end);
      removed += end - start;
    }
    if (name !== '.nv_fatbin') continue;
    for (const entry of entriesOf(library, start, end)) {
      if (entry.architecture === architecture) {
        kept += entry.end - entry.start;
        continue;
      }
      library.fill(0, entry.start, entry.end);
      removed += entry.end - entry.start;
    }
  }
  if (kept === 0) throw new Error(`the library has no device code for sm_${architecture}`);
  return { kept, removed };
}

/** Sections of a 64-bit little-endian ELF file. */
function* sectionsOf(elf) {
  const table = Number(elf.readBigUInt64LE(0x28));
  const size = elf.readUInt16LE(0x3a);
  const count = elf.readUInt16LE(0x3c);
  const headerOf = (index) => {
    const at = table + index * size;
    return {
      nameAt: elf.readUInt32LE(at),
      start: Number(elf.readBigUInt64LE(at + 24)),
      bytes: Number(elf.readBigUInt64LE(at + 32)),
    };
  };
  const names = headerOf(elf.readUInt16LE(0x3e)).start;
  for (let index = 0; index < count; index++) {
    const { nameAt, start, bytes } = headerOf(index);
    const name = elf.toString('latin1', names + nameAt, elf.indexOf(0, names + nameAt));
    yield { name, start, end: start + bytes };
  }
}

/** Code of each entry (machine code or PTX) of the fat binaries that lie in a section. */
function* entriesOf(elf, start, end) {
  const alignment = 8;
  for (let at = start; at < end; ) {
    if (elf.readUInt32LE(at) !== fatbinMagic) {
      at += alignment;
      continue;
    }
    let entry = at + elf.readUInt16LE(at + 6);
    at = entry + Number(elf.readBigUInt64LE(at + 8));
    while (entry < at) {
      const code = entry + elf.readUInt32LE(entry + 4);
      const next = code + Number(elf.readBigUInt64LE(entry + 8));
      yield { architecture: elf.readUInt32LE(entry + 28), start: code, end: next };
      entry = next;
    }
  }
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const [, , source, output, architecture] = argv;
  const library = readFileSync(source);
  const { kept, removed } = slimFatbin(library, Number(architecture));
  writeFileSync(output, library);
  process.stdout.write(`kept ${kept} bytes for sm_${architecture}, zeroed ${removed}\n`);
}
