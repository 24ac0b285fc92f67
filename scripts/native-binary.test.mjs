// SPDX-License-Identifier: Apache-2.0
// The checks of an addon find what they look for: lines as objdump prints them, each changed in one place.

import { describe, expect, it } from 'vitest';
import { binaryProblems, floorProblems, maxAddonBytes } from './native-binary.mjs';

const undefinedRow = (version, name) => `0000000000000000      DF *UND*\t0000000000000000 ${version} ${name}`;
const exportedRow = (name) => `00000000000d1840 g    DF .text\t0000000000000006  Base        ${name}`;

const symbols = [
  '',
  'addon.node:     file format elf64-x86-64',
  '',
  'DYNAMIC SYMBOL TABLE:',
  undefinedRow('(GLIBC_2.2.5)', 'ftell'),
  undefinedRow('(GLIBC_2.34)', 'pthread_create'),
  undefinedRow('(GLIBCXX_3.4.29)', '_ZSt28__throw_bad_array_new_lengthv'),
  '0000000000000000  w   D  *UND*\t0000000000000000  Base        __gmon_start__',
  '0000000000000000      D  *UND*\t0000000000000000  Base        napi_create_object',
  '0000000000000000      D  *UND*\t0000000000000000  Base        node_api_get_module_file_name',
  exportedRow('napi_register_module_v1'),
  exportedRow('node_api_module_get_api_version_v1'),
].join('\n');

const headers = `
Dynamic Section:
  NEEDED               libstdc++.so.6
  NEEDED               libc.so.6
  STRTAB               0x0000000000001f50

Version References:
  required from libstdc++.so.6:
    0x0297f879 0x00 14 GLIBCXX_3.4.29
  required from libc.so.6:
    0x069691b4 0x00 05 GLIBC_2.34
    0x09691a75 0x00 02 GLIBC_2.2.5
`;
const good = { bytes: 1_733_192, symbols, headers };

/** The facts of an addon with more lines. */
const withSymbol = (row) => ({ ...good, symbols: `${symbols}\n${row}` });
const withHeader = (row) => ({ ...good, headers: headers.replace('  STRTAB', `${row}\n  STRTAB`) });
const withVersion = (row) => ({ ...good, headers: `${headers}    ${row}\n` });

describe('binaryProblems', () => {
  it('finds nothing in a good addon', () => {
    expect(binaryProblems(good)).toEqual([]);
  });

  it.each([
    ['too large', { ...good, bytes: maxAddonBytes + 1 }, 'has 40000001 bytes, at most 40000000 are allowed'],
    ['a function leaves', withSymbol(exportedRow('cudaMalloc')), 'exports cudaMalloc'],
    ['data leaves', withSymbol(exportedRow('kTable').replace('DF .text', 'DO .data')), 'exports kTable'],
    [
      'a weak template leaves',
      withSymbol(exportedRow('_ZNSt6vectorIiE').replace('g  ', ' w ')),
      'exports _ZNSt6vectorIiE',
    ],
    [
      'a unique static leaves',
      withSymbol(exportedRow('_ZGVZ4onceE').replace('g    DF .text', 'u    DO .bss ')),
      'exports _ZGVZ4onceE',
    ],
    ['NCCL is linked', withHeader('  NEEDED               libnccl.so.2'), 'links libnccl.so.2'],
    ['the driver is linked', withHeader('  NEEDED               libcuda.so.1'), 'links libcuda.so.1'],
    [
      'Node-API 10 is called',
      withSymbol(undefinedRow('Base', 'node_api_create_buffer_from_arraybuffer')),
      'calls node_api_create_buffer_from_arraybuffer, which is not in Node-API 9',
    ],
    [
      'it cannot be loaded by Node',
      { ...good, symbols: symbols.replace(exportedRow('napi_register_module_v1'), '') },
      'does not export napi_register_module_v1',
    ],
  ])('%s', (_, facts, problem) => {
    expect(binaryProblems(facts)).toEqual([problem]);
  });

  it('is not content with an empty listing', () => {
    expect(binaryProblems({ bytes: 1, symbols: '', headers: '' })).toHaveLength(3);
  });
});

describe('floorProblems', () => {
  it('finds nothing in a good addon', () => {
    expect(floorProblems(good)).toEqual([]);
  });

  it('names the function that needs a newer glibc', () => {
    const facts = {
      ...withVersion('0x06969188 0x00 21 GLIBC_2.38'),
      symbols: undefinedRow('(GLIBC_2.38)', '__isoc23_strtol'),
    };
    expect(floorProblems(facts)).toEqual(['needs GLIBC_2.38 for __isoc23_strtol']);
  });

  it.each([
    ['GLIBCXX_3.4.32', 'needs GLIBCXX_3.4.32'],
    ['CXXABI_1.3.15', 'needs CXXABI_1.3.15'],
    ['GLIBC_ABI_DT_RELR', 'needs GLIBC_ABI_DT_RELR'],
    ['GLIBC_PRIVATE', 'needs GLIBC_PRIVATE'],
  ])('refuses %s', (version, problem) => {
    expect(floorProblems(withVersion(`0x0297f879 0x00 30 ${version}`))).toEqual([problem]);
  });

  it('is not content with an empty listing', () => {
    expect(floorProblems({ symbols: '', headers: '' })).toHaveLength(1);
  });
});
