// SPDX-License-Identifier: Apache-2.0
// What a case throws that cannot run here.

/** The case counts as skipped, for the reason of the message. */
export class Skipped extends Error {}
