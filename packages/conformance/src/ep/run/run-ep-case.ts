// SPDX-License-Identifier: Apache-2.0
// Runs a case of expert parallelism: step by step, all at once, or as captured graphs.

import type { CaseWorld } from '../../run/case-world.js';
import type { EpCase } from '../cases/ep-case.js';
import { enqueueBackward, enqueueCombine, enqueueDispatch, enqueueRoute } from './enqueue-step.js';
import { EpSession, type OpenStep } from './ep-session.js';

/** What is wrong, as a sentence, or undefined. */
export async function runEpCase(world: CaseWorld, epCase: EpCase): Promise<string | undefined> {
  const session = await EpSession.open(world, epCase);
  let problem: string | undefined;
  try {
    problem = await runSteps(session);
  } catch (error) {
    // What the session holds may still be in use; the world ends with it.
    await session.dispose().catch(() => {});
    throw error;
  }
  await session.dispose();
  return problem;
}

function stepsOf({ steps, handles, routings }: EpCase): number {
  return steps ?? Math.max(handles.length, routings.length);
}

function runSteps(session: EpSession): Promise<string | undefined> {
  const { capture = false, pipelined = false } = session.epCase;
  if (capture) return runCaptured(session);
  return pipelined ? runPipelined(session) : runOneByOne(session);
}

async function runOneByOne(session: EpSession): Promise<string | undefined> {
  for (let epoch = 0; epoch < stepsOf(session.epCase); epoch++) {
    const step = session.openStep(epoch);
    await session.fill(step);
    const early = session.epCase.exactRows === true ? await enqueueSized(session, step) : undefined;
    if (session.epCase.exactRows !== true) session.enqueue(step);
    await session.synchronize();
    const problem = early ?? (await session.difference(step)) ?? (await session.countsDifference(step));
    await session.closeStep(step);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Waits for the counts between route and dispatch, as who sizes buffers by them does. */
async function enqueueSized(session: EpSession, step: OpenStep): Promise<string | undefined> {
  const { epCase } = session;
  const targets = session.allRanks.map((rank) => session.target(step, rank));
  for (const target of targets) enqueueRoute(epCase.config, target);
  const problem = await session.countsDifference(step);
  for (const target of targets) {
    enqueueDispatch(epCase, target);
    enqueueCombine(epCase, target);
    if (epCase.backward === true) enqueueBackward(target);
  }
  return problem;
}

async function runPipelined(session: EpSession): Promise<string | undefined> {
  const steps: OpenStep[] = [];
  for (let epoch = 0; epoch < stepsOf(session.epCase); epoch++) {
    const step = session.openStep(epoch);
    await session.fill(step);
    steps.push(step);
  }
  for (const step of steps) session.enqueue(step);
  await session.synchronize();
  for (const step of steps) {
    const problem = await session.difference(step);
    if (problem !== undefined) return problem;
    await session.closeStep(step);
  }
  return undefined;
}

/** A graph per handle and rank; each launch has other values in the same memory. */
async function runCaptured(session: EpSession): Promise<string | undefined> {
  const { epCase } = session;
  const worst = { worstCase: true };
  const recorded = epCase.handles.map((_, handleIndex) => {
    const step = session.openStep(handleIndex, { ...worst, handleIndex });
    return { step, graphs: session.capture(step) };
  });
  let problem: string | undefined;
  for (let epoch = 0; epoch < stepsOf(epCase) && problem === undefined; epoch++) {
    const { step: first, graphs } = recorded[epoch % recorded.length]!;
    const step = session.redraw(first, epoch, worst);
    await session.fill(step);
    for (const rank of session.allRanks) session.stream(rank, step.handleIndex).launch(graphs[rank]!);
    await session.synchronize();
    problem = (await session.difference(step)) ?? (await session.countsDifference(step));
  }
  await Promise.all(recorded.flatMap(({ graphs }) => graphs.map((graph) => graph.dispose())));
  return problem;
}
