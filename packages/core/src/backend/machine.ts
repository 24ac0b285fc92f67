// SPDX-License-Identifier: Apache-2.0
// What a GPU backend needs to know of this machine before it is loaded: NVIDIA driver and C library.

import { readFileSync } from 'node:fs';

/** Facts about a machine, read when asked for. */
export interface Machine {
  /** Version of the NVIDIA kernel driver; undefined when it cannot be read, which need not mean that there is none (WSL). */
  driver(): string | undefined;
  /** Version of glibc; undefined on musl and outside Linux. */
  glibc(): string | undefined;
}

/** The machine that this process runs on. */
export const thisMachine: Machine = { driver: readDriver, glibc: readGlibc };

/**
 * The driver's version in the text of /proc/driver/nvidia/version, as in
 * `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build ...`.
 */
export function parseDriverVersion(text: string): string | undefined {
  return /^NVRM version:.*?\s(\d{3,}(?:\.\d+)+)\s/m.exec(text)?.[1];
}

function readDriver(): string | undefined {
  try {
    return parseDriverVersion(readFileSync('/proc/driver/nvidia/version', 'utf8'));
  } catch {
    return undefined;
  }
}

function readGlibc(): string | undefined {
  // A report lists network interfaces unless told otherwise, which may wait for name servers (Node 20.13 and later).
  const report = process.report as typeof process.report & { excludeNetwork?: boolean };
  const before = report.excludeNetwork;
  report.excludeNetwork = true;
  try {
    const { header } = report.getReport() as { header: { glibcVersionRuntime?: string } };
    return header.glibcVersionRuntime;
  } finally {
    report.excludeNetwork = before ?? false;
  }
}
