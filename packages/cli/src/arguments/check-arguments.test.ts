// SPDX-License-Identifier: Apache-2.0
// Nothing on a command line is ignored: what is not understood is refused, with what was probably meant.

import type { ArgsDef } from 'citty';
import { describe, expect, it } from 'vitest';
import { Arguments } from './arguments.js';
import { checkArguments } from './check-arguments.js';
import { byCopyEngines, smsByRank, smsOf } from './sms-argument.js';

const definitions: ArgsDef = {
  checkpoint: { type: 'string', valueHint: 'PATH' },
  from: { type: 'string', valueHint: 'SIZES' },
  'from-manifest': { type: 'string', valueHint: 'FILE' },
  layers: { type: 'string', valueHint: 'N' },
  verify: { type: 'boolean' },
  help: { type: 'boolean', alias: 'h' },
};

function check(...rawArgs: string[]): void {
  checkArguments('nccl-ext refit', definitions, rawArgs);
}

describe('checkArguments', () => {
  it.each([
    [[]],
    [['--checkpoint', 'a', '--verify']],
    [['--checkpoint=a', '--from', 'tp=4,pp=2']],
    [['--from=tp=4,pp=2', '-h']],
    [['--checkpoint=-odd-name-']],
  ])('takes %j', (rawArgs) => {
    expect(() => check(...rawArgs)).not.toThrow();
  });

  it.each([
    [['--chekpoint', 'a'], 'has no option --chekpoint', 'Did you mean --checkpoint?'],
    [['--frum-manifest=a'], 'has no option --frum-manifest', 'Did you mean --from-manifest?'],
    [['--zzz'], 'has no option --zzz', 'See `nccl-ext refit --help`'],
    [['-x'], 'has no option -x', 'See `nccl-ext refit --help`'],
    [['--no-verify'], 'has no option --no-verify', 'See `nccl-ext refit --help`'],
    [['--checkpoint'], '--checkpoint needs a value.', 'Write --checkpoint PATH.'],
    [['--checkpoint', '--verify'], '--checkpoint needs a value.', 'Write --checkpoint PATH.'],
    [['--checkpoint='], '--checkpoint needs a value.', 'Write --checkpoint PATH.'],
    [['--verify=no'], '--verify takes no value, but has "no".', 'Write --verify alone.'],
    [['--from', 'tp=4', '--from', 'tp=2'], '--from is given twice.', 'Give it once.'],
    [['--from', 'tp=4', 'pp=2'], 'does not take the argument "pp=2"', 'Values follow an option'],
    [['--', 'a'], 'does not take the argument "--"', 'Values follow an option'],
  ])('refuses %j', (rawArgs, message, help) => {
    expect(() => check(...rawArgs)).toThrow(
      expect.objectContaining({
        code: 'ERR_INVALID_ARGUMENT',
        message: expect.stringContaining(message),
        help: expect.stringContaining(help),
      }),
    );
  });
});

describe('Arguments', () => {
  const all: ArgsDef = {
    ...definitions,
    bytes: { type: 'string' },
    backend: { type: 'string' },
    workers: { type: 'string' },
    timeout: { type: 'string' },
  };
  const read = (...rawArgs: string[]): Arguments => new Arguments(all, rawArgs);

  it('reads text, flags and what is absent', () => {
    const args = read('--from=tp=4,pp=2', '--from-manifest', 'a.json', '--verify');
    expect(args.text('from')).toBe('tp=4,pp=2');
    expect(args.text('from-manifest')).toBe('a.json');
    expect(args.flag('verify')).toBe(true);
    expect(args.flag('help')).toBe(false);
    expect(args.text('layers')).toBeUndefined();
    expect(args.has('layers')).toBe(false);
  });

  it('reads integers within limits only', () => {
    expect(read('--layers', '3').integer('layers', 1, 10)).toBe(3);
    for (const text of ['0', '11', '3.5', '1e1', '0x3', 'three', '--3']) {
      expect(() => read(`--layers=${text}`).integer('layers', 1, 10)).toThrow(
        `--layers is ${JSON.stringify(text)}; it must be an integer from 1 to 10.`,
      );
    }
  });

  it('reads sizes with binary and decimal units', () => {
    const bytes = (text: string): number | undefined => read('--bytes', text).bytes('bytes', 1, 2 ** 40);
    expect(bytes('4096')).toBe(4096);
    expect(bytes('256KiB')).toBe(256 * 1024);
    expect(bytes('64MiB')).toBe(2 ** 26);
    expect(bytes('2GB')).toBe(2e9);
    for (const text of ['0', '1.5GB', 'MiB', '2TiB', '9999GiB'])
      expect(() => bytes(text)).toThrow('--bytes is');
  });

  it('reads one of a list', () => {
    expect(read('--backend', 'cuda').oneOf('backend', ['auto', 'cuda'])).toBe('cuda');
    expect(() => read('--backend', 'gpu').oneOf('backend', ['auto', 'cuda'])).toThrow(
      '--backend is "gpu"; it must be one of auto, cuda.',
    );
  });

  it('holds library options to the limits of the library', () => {
    expect(read('--workers', '0').libraryNumber('workers', 'workers')).toBe(0);
    expect(() => read('--workers', '257').libraryNumber('workers', 'workers')).toThrow(
      'an integer from 0 to 256',
    );
    expect(() => read('--timeout', '0').libraryNumber('timeout', 'timeoutMs')).toThrow('--timeout is "0"');
  });

  it('reads SMs of senders and receivers', () => {
    expect(smsOf('sms', '28', ',')).toEqual({ senders: 28, receivers: 28 });
    expect(smsOf('sms', '28,4', ',')).toEqual({ senders: 28, receivers: 4 });
    expect(smsOf('sweep', '28+4', '+')).toEqual({ senders: 28, receivers: 4 });
    expect(byCopyEngines(smsOf('sms', '28,4', ','))).toBe(false);
    for (const name of ['sms', 'sweep']) expect(byCopyEngines(smsOf(name, '0', ','))).toBe(true);
    expect(smsByRank({ senders: 28, receivers: 4 }, 4)).toEqual([28, 28, 4, 4]);
    for (const text of [
      '',
      '1025',
      '28,1025',
      '28,',
      '28,4,4',
      '-1',
      '1.5',
      'x',
      '28+4',
      '28,0',
      '0,4',
      '0,0',
    ])
      expect(() => smsOf('sms', text, ',')).toThrow(
        `--sms is "${text}"; it must be 0 for copy engines, an integer from 1 to 1024, or two of these as in 28,4.`,
      );
  });

  it('wants exactly one of two', () => {
    expect(read('--from', 'tp=1').exactlyOne(['from', 'from-manifest'])).toBe('from');
    expect(() => read().exactlyOne(['from', 'from-manifest'])).toThrow(
      '--from or --from-manifest is missing.',
    );
    expect(() => read('--from=a', '--from-manifest=b').exactlyOne(['from', 'from-manifest'])).toThrow(
      '--from and --from-manifest exclude each other.',
    );
  });
});
