// SPDX-License-Identifier: Apache-2.0
// Slurm's folded lists as its documentation shows them, and malformed ones.

import { describe, expect, it } from 'vitest';
import { firstNode, tasksOnNode } from './slurm.js';

describe('tasksOnNode', () => {
  it.each([
    ['4', 0, 4],
    ['2(x3),1', 0, 2],
    ['2(x3),1', 2, 2],
    ['2(x3),1', 3, 1],
    ['8,4(x2)', 2, 4],
  ])('finds in %j the tasks of node %i', (list, node, tasks) => {
    expect(tasksOnNode(list, node)).toBe(tasks);
  });

  it.each([
    ['2(x3),1', 4],
    ['', 0],
    ['0', 0],
    ['2(x0)', 0],
    ['2(x3', 0],
    ['four', 0],
  ])('finds nothing in %j for node %i', (list, node) => {
    expect(tasksOnNode(list, node)).toBeUndefined();
  });
});

describe('firstNode', () => {
  it.each([
    ['tux3', 'tux3'],
    ['gpu[01-04,07],login', 'gpu01'],
    ['gpu[7,9]', 'gpu7'],
    ['rack[0-1]node[2-3]', 'rack0node2'],
    ['a.example.org,b', 'a.example.org'],
    ['node-[3-4].cluster', 'node-3.cluster'],
  ])('of %j is %j', (list, node) => {
    expect(firstNode(list)).toBe(node);
  });

  it.each(['', '[', 'gpu[', 'gpu]', 'gpu[]', ',a', 'a b'])('of %j is none', (list) => {
    expect(firstNode(list)).toBeUndefined();
  });
});
