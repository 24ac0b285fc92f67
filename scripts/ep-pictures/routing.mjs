// The tokens that all pictures show: three ranks with two experts each, up to three tokens per rank, two experts per token.

export const ranks = 3;
export const experts = 6;
export const most = 3;
export const topK = 2;
export const hidden = 4;
/** Of packed zones. */
export const alignment = 4;

/** `routing[s][t]`: ids and weights of token t of rank s. Nobody wants expert 2, and one entry is not routed. */
export const routing = [
  [entry([1, 4], [0.75, 0.25]), entry([0, 1], [0.5, 0.5]), entry([5, 3], [0.75, 0.25])],
  [entry([3, 0], [0.75, 0.25]), entry([3, -1], [1, 0])],
  [entry([4, 5], [0.5, 0.5]), entry([0, 3], [0.75, 0.25]), entry([1, 4], [0.5, 0.5])],
];

/** The value of a token's elements, from which a row tells where it came from; never 0, which is padding. */
export function tokenValue(source, token) {
  return 8 * source + token + 1;
}

function entry(ids, weights) {
  return { ids, weights };
}
