// SPDX-License-Identifier: Apache-2.0
// How long each step of a publish took on one rank, so that a program can tell a slow move from a slow pause.

/** Milliseconds on this rank; steps follow each other without gaps. */
export interface PublishTimes {
  /** Until every rank agreed on version and plan; the old version serves. */
  readonly agreeMs: number;
  /** From there until every rank stopped serving. */
  readonly pauseMs: number;
  /** From there until this rank sent and got everything; hashing included if the transfer verifies. */
  readonly moveMs: number;
  /** From there until every rank had said that everything arrived. */
  readonly verifyMs: number;
  /** From there until this rank serves the new version. */
  readonly resumeMs: number;
  /** How long this rank did not serve: from the call of `pause` to the end of `resume`. */
  readonly stallMs: number;
}

/** Where the steps of a publish ended. Times are those of `performance.now()`. */
export class StepClock {
  readonly #ends: number[] = [performance.now()];

  /** Ends the current step. */
  end(): void {
    this.#ends.push(performance.now());
  }

  /** Of the five steps, all of which have ended. */
  get times(): PublishTimes {
    const [agreeMs, pauseMs, moveMs, verifyMs, resumeMs] = this.#ends
      .slice(1)
      .map((end, step) => end - this.#ends[step]!) as [number, number, number, number, number];
    const stallMs = pauseMs + moveMs + verifyMs + resumeMs;
    return { agreeMs, pauseMs, moveMs, verifyMs, resumeMs, stallMs };
  }
}
