// SPDX-License-Identifier: Apache-2.0
// What srun says in lists: tasks per node and names of nodes, both folded ("4(x2),3", "gpu[01-04],login").

/** Tasks on the node of this index, as SLURM_STEP_TASKS_PER_NODE counts them; undefined where the list says none. */
export function tasksOnNode(list: string, node: number): number | undefined {
  let first = 0;
  for (const part of list.split(',')) {
    const found = /^([1-9]\d*)(?:\(x([1-9]\d*)\))?$/.exec(part);
    if (found === null) return undefined;
    first += Number(found[2] ?? 1);
    if (node < first) return Number(found[1]);
  }
  return undefined;
}

/** The first node of a list, where task 0 runs; undefined when the list is malformed. */
export function firstNode(list: string): string | undefined {
  // Up to the first comma outside brackets, which hold ranges and commas of their own.
  const folded = /^(?:[^,[\]]|\[[^[\]]*\])+(?=,|$)/.exec(list)?.[0];
  const name = folded?.replace(/\[([^\],-]+)[^\]]*\]/g, '$1');
  return name !== undefined && /^[\w.-]+$/.test(name) ? name : undefined;
}
