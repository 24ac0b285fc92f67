// SPDX-License-Identifier: Apache-2.0
// What to do about a missing, doubled or broken GPU backend, worded by what this machine has.

import { type CudaName, oldestDriver } from './cuda-package.js';
import { atLeast } from './dotted-version.js';

const useEmbedded = "or use no GPU: backend: 'embedded' (NCCL_EXT_BACKEND=embedded).";

/** The newest CUDA major that a driver supports. */
export function bestFor(driver: string): CudaName | undefined {
  if (atLeast(driver, oldestDriver.cuda13)) return 'cuda13';
  return atLeast(driver, oldestDriver.cuda12) ? 'cuda12' : undefined;
}

/** How to get a GPU backend. `wanted`: the one that was asked for by name. */
export function installAdvice(driver: string | undefined, wanted?: CudaName): string {
  const install = (name: CudaName): string => `\`npm i @nccl-ext/${name}\``;
  if (driver === undefined) {
    return `No NVIDIA driver was found. With one, run ${install(wanted ?? 'cuda13')}, ${useEmbedded}`;
  }
  const best = bestFor(driver);
  if (best === undefined) {
    return `Driver ${driver} found, but CUDA 12 needs >= ${oldestDriver.cuda12}: update it, ${useEmbedded}`;
  }
  if (wanted !== undefined && !atLeast(driver, oldestDriver[wanted])) {
    const need = `CUDA ${wanted.slice(4)} needs >= ${oldestDriver[wanted]}`;
    return `Driver ${driver} found, but ${need}: update it, or run ${install(best)}.`;
  }
  return `Driver ${driver} found: run ${install(wanted ?? best)}, ${useEmbedded}`;
}

/** Which of two backends to uninstall. */
export function uninstallAdvice(driver: string | undefined): string {
  const best = driver === undefined ? undefined : bestFor(driver);
  const keepBoth = 'Where both must stay, NCCL_EXT_BACKEND=cuda12 or NCCL_EXT_BACKEND=cuda13 picks one.';
  if (best === 'cuda13')
    return `Driver ${driver} supports CUDA 13: run \`npm uninstall @nccl-ext/cuda12\`.\n${keepBoth}`;
  if (best === 'cuda12') {
    const reason = `Driver ${driver} does not support CUDA 13 (needs >= ${oldestDriver.cuda13})`;
    return `${reason}: run \`npm uninstall @nccl-ext/cuda13\`.\n${keepBoth}`;
  }
  return `Run \`npm uninstall @nccl-ext/cuda12\` or \`npm uninstall @nccl-ext/cuda13\`.\n${keepBoth}`;
}

/** What a message of the dynamic linker or of Node means. */
export function loadAdvice(message: string, name: CudaName, glibc: string | undefined): string {
  const glibcNeeded = /GLIBC_(\d+(?:\.\d+)*)/.exec(message)?.[1];
  if (glibcNeeded !== undefined) {
    return `It needs glibc ${glibcNeeded}, and this system has ${glibc ?? 'none'}. ${newerSystem}`;
  }
  if (/musl|ld-linux/.test(message))
    return `This looks like musl (Alpine); the GPU backends need glibc. ${newerSystem}`;
  if (/GLIBCXX_|CXXABI_|libstdc\+\+/.test(message)) {
    return 'Its C++ library is missing or too old: install or update libstdc++6, and look for an older copy on LD_LIBRARY_PATH (conda).';
  }
  if (/worker thread/.test(message))
    return 'Set NCCL_EXT_NCCL_LIBRARY or NCCL_HOME for the process instead, before it starts.';
  if (/addons is disabled|ERR_DLOPEN_DISABLED/.test(message))
    return 'Node runs with --no-addons: remove that option.';
  const library = /(\S+\.so[.\d]*): cannot open shared object file/.exec(message)?.[1];
  if (library !== undefined && !library.endsWith('.node')) {
    return `The library ${library} was not found: install it, or add its directory to LD_LIBRARY_PATH.`;
  }
  if (/Cannot find|no such file|not found|cannot open/i.test(message)) {
    return `A file of the package is missing: reinstall with \`npm i --force @nccl-ext/${name}\`.`;
  }
  return `Run \`npx nccl-ext doctor\`; if the package is damaged, reinstall with \`npm i --force @nccl-ext/${name}\`.`;
}

const newerSystem = 'Use Debian 12, Ubuntu 22.04, RHEL 9 or a newer one (in containers too).';
