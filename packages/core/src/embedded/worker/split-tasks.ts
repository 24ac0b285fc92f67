// SPDX-License-Identifier: Apache-2.0
// The worlds that were split from the one that a worker serves: visited with it, and never after they were closed.

import { splitEntry, splitWord, worldWord } from '../control/world-layout.js';
import { newTask, openWorld } from './open-world.js';
import type { Task, WorkerMessage, World } from './task.js';

/** This worker's task for each split world. */
export class SplitTasks {
  readonly #root: World;
  readonly #post: (message: WorkerMessage) => void;
  /** By entry of the table. */
  readonly #tasks: { readonly id: number; readonly task: Task }[] = [];

  constructor(root: World, post: (message: WorkerMessage) => void) {
    this.#root = root;
    this.#post = post;
  }

  /** Calls `look` for every open split world; true if any call was. */
  visit(look: (task: Task) => boolean): boolean {
    const { space, base, ranks } = this.#root;
    const count = Atomics.load(space.i32, base + worldWord.splits);
    let moved = false;
    for (let split = 0; split < count; split++) {
      const entry = base + splitEntry(ranks, split);
      if (Atomics.load(space.i32, entry + splitWord.id) === 0) continue;
      // Who closes it first clears the id and then waits until nobody is counted in.
      Atomics.add(space.i32, entry + splitWord.visitors, 1);
      const id = Atomics.load(space.i32, entry + splitWord.id);
      if (id !== 0 && look(this.#taskOf(split, id, entry))) moved = true;
      Atomics.sub(space.i32, entry + splitWord.visitors, 1);
    }
    return moved;
  }

  #taskOf(split: number, id: number, entry: number): Task {
    const known = this.#tasks[split];
    if (known?.id === id) return known.task;
    const { spaces, space } = this.#root;
    const address = space.f64[entry / 2 + splitWord.regionF64]!;
    const task = newTask(openWorld(spaces, address, id, this.#root, this.#post));
    this.#tasks[split] = { id, task };
    return task;
  }
}
