// SPDX-License-Identifier: Apache-2.0
// What data sheets say of NVLink, to print beside what was measured.

/** GB/s of all links of a GPU in one direction: half of the figure for both that NVIDIA prints. */
const nominal: readonly (readonly [name: RegExp, gigabytesPerSecond: number])[] = [
  [/\bG?B[23]00\b/, 900],
  [/\bH[12]00\b(?!.*(NVL|PCIe))|\bH200 NVL\b/, 450],
  [/\bA100-SXM/, 300],
];

/** By the name that the driver gives a GPU; undefined for one that is not listed here. */
export function nominalLinkRate(gpu: string): number | undefined {
  return nominal.find(([name]) => name.test(gpu))?.[1];
}
