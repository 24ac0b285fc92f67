// SPDX-License-Identifier: Apache-2.0
// Says which pipeline stage has a layer.

/**
 * floor(layer x pp / layers). Layers behind the last, such as those for multi-token prediction, are on the last stage.
 */
export function stageOfLayer(layer: number, layers: number, pp: number): number {
  return Math.min(Math.floor((layer * pp) / layers), pp - 1);
}
