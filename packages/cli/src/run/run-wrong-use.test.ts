// SPDX-License-Identifier: Apache-2.0
// `nccl-ext run` says what is wrong with its own line before any script starts.

import { describe, expect, it } from 'vitest';
import { run, useScripts } from './run-command.test-util.js';

useScripts();

describe('wrong use', () => {
  it.each([
    ['run -n 2', 'The script is missing.', 'nccl-ext run -n 4 script.mjs'],
    ['run -n 2 --', 'The script is missing.', 'nccl-ext run -n 4 script.mjs'],
    ['run hello.mjs -n 2', '--ranks is missing.', 'before the script'],
    ['run -n 2 absent.mjs', 'The script absent.mjs is not a file.', 'Looked for /'],
    ['run -n 2 .', 'The script . is not a file.', 'Looked for /'],
    ['run -n 0 hello.mjs', '--ranks is "0"', 'from 1 to 1024'],
    ['run -n 1025 hello.mjs', '--ranks is "1025"', 'from 1 to 1024'],
    ['run -n 2 --rank 3 hello.mjs', 'has no option --rank', 'Did you mean --ranks?'],
  ])('%j is 2, says what is wrong and what to do', async (line, message, help) => {
    const { code, stdout, stderr } = await run(line);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).toContain(help);
  });

  it.each(['RANK', 'OMPI_COMM_WORLD_RANK'])('is refused where a launcher set %s', async (name) => {
    const { code, stdout, stderr } = await run('run -n 2 hello.mjs', { env: { [name]: '0' } });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`a launcher started it: ${name} is 0.`);
    expect(stderr).toContain(`unset ${name}`);
  });

  it('shows help, the script need not be right', async () => {
    const { code, stdout } = await run('run --help absent.mjs');
    expect(code).toBe(0);
    expect(stdout).toContain('nccl-ext run -n N [options] [--] SCRIPT [ARGUMENT...]');
    expect(stdout).toMatch(/\nExamples\n {2}# /);
  });
});
