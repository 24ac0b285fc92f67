// SPDX-License-Identifier: Apache-2.0
// What may follow what on a handle.

import { beforeEach, describe, expect, it } from 'vitest';
import type { CallPlace } from '../fields/call-place.js';
import { CallOrder } from './call-order.js';

let order: CallOrder;
beforeEach(() => {
  order = new CallOrder();
});

function attempt(operation: Parameters<CallOrder['require']>[0], changes = 0): void {
  const place: CallPlace = { rank: 0, operation, layout: 'expert-major', pass: 'forward' };
  order.require(operation, place, changes);
}

function refuses(operation: Parameters<CallOrder['require']>[0], text: RegExp, changes = 0): void {
  expect(() => attempt(operation, changes)).toThrow(
    expect.objectContaining({ code: 'ERR_INVALID_STATE', message: expect.stringMatching(text) }),
  );
}

describe('order of operations', () => {
  it('is route, dispatch, combine, each as often as wanted', () => {
    for (let i = 0; i < 2; i++) {
      attempt('route');
      order.routed(3);
      for (let j = 0; j < 2; j++) {
        attempt('dispatch');
        order.dispatched(false);
        attempt('combine');
        order.combined(false);
        attempt('combine');
      }
    }
    expect(order.tokens).toBe(3);
  });

  it('refuses what comes too early', () => {
    refuses('dispatch', /before a route/);
    refuses('combine', /before a dispatch/);
    refuses('complete', /no open send/);
    refuses('counts', /before a dispatch/);
    order.routed(1);
    refuses('counts', /before a dispatch/);
    refuses('combine', /before a dispatch/);
    order.dispatched(false);
    order.routed(1);
    refuses('combine', /before a dispatch/);
  });

  it('ends sends in their order, and routes only when none is open', () => {
    order.routed(1);
    order.dispatched(true);
    order.dispatched(true);
    refuses('route', /2 sends/);
    refuses('combine', /a dispatch of this handle is open/);
    refuses('counts', /a dispatch of this handle is open/);
    order.completed();
    order.completed();
    order.combined(true);
    refuses('dispatch', /a combine of this handle is open/);
    attempt('complete');
    order.completed();
    attempt('route');
    refuses('complete', /no open send/);
  });

  it('starts again after a change of membership', () => {
    order.routed(1);
    order.dispatched(true);
    refuses('combine', /change of membership/, 1);
    refuses('dispatch', /change of membership/, 1);
    refuses('complete', /no open send/, 1);
    attempt('route', 1);
    order.routed(1);
    attempt('dispatch', 1);
    order.dispatched(false);
    attempt('combine', 1);
  });
});
