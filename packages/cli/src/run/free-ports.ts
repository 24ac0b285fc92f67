// SPDX-License-Identifier: Apache-2.0
// Ports for ranks to meet on. The system picks them; until a rank listens there, another process may still take one.

import { type AddressInfo, createServer, type Server } from 'node:net';

/** `count` different TCP ports that are free on 127.0.0.1. */
export async function freePorts(count: number): Promise<number[]> {
  // All at once, so that they differ.
  const servers = await Promise.all(Array.from({ length: count }, listen));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}
