// SPDX-License-Identifier: Apache-2.0
// Every release in native code names its acquire: an edge has an entry in the card of a file (its leading comment) and both ends somewhere
// below a card, so that a reader can say what makes which data visible to whom (docs/native.md, "Edges").
//
//   // edge B1   all ranks -> all ranks: ...        the entry; `edges   E1 ... E2 ...` holds several
//   // edges   B1 (runtime/shared/barrier.hpp)      an edge that the card of another file describes
//   publish<kSystem>(flag, epoch);  // B1 release   one end; `// B1 acquire` is the other

const tag = '[A-Z]{1,2}[0-9]+';

/** @param files rows of { path, text }, paths from native/ on. @returns one line for each problem */
export function edgeProblems(files) {
  const problems = [];
  const edges = new Map();
  const cards = files.map(({ path, text }) => ({ path, ...splitCard(text) }));
  for (const { path, card } of cards)
    for (const name of entriesOf(card).own)
      edges.set(`${path}#${name}`, { path, name, release: 0, acquire: 0 });
  for (const { path, card, body, bodyLine } of cards) {
    const { own, elsewhere } = entriesOf(card);
    for (const [name, other] of elsewhere)
      if (!edges.has(`${other}#${name}`)) problems.push(`${path}: no edge ${name} in the card of ${other}`);
    for (const { name, end, line } of endsIn(body)) {
      const home = own.has(name) ? path : elsewhere.get(name);
      const edge = edges.get(`${home}#${name}`);
      if (edge === undefined)
        problems.push(`${path}:${bodyLine + line}: ${name} ${end} has no entry in the card`);
      else edge[end] += 1;
    }
  }
  for (const { path, name, release, acquire } of edges.values()) {
    if (release === 0) problems.push(`${path}: edge ${name} has no release`);
    if (acquire === 0) problems.push(`${path}: edge ${name} has no acquire`);
  }
  return problems;
}

/** The leading comment, and the rest with the number of lines before it. */
function splitCard(text) {
  const lines = text.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  const bodyLine = end === -1 ? lines.length : end;
  return { card: lines.slice(0, bodyLine), body: lines.slice(bodyLine), bodyLine };
}

/** Edges of the sections `edge` and `edges` of a card; a section ends where a line begins with another word and three spaces. */
function entriesOf(card) {
  const own = new Set();
  const elsewhere = new Map();
  let inside = false;
  for (const line of card) {
    const section = /^\/\/ ([a-z]+)(?: |$)/.exec(line)?.[1];
    if (section !== undefined) inside = section === 'edge' || section === 'edges';
    // A section may begin within a line, after three spaces.
    const parts = line.split(/ {3,}(?=(?:flow|roles|limits|failure|edges?) )/);
    for (const part of parts) {
      const word = /^(flow|roles|limits|failure|edges?) /.exec(part)?.[1];
      if (word !== undefined) inside = word.startsWith('edge');
      if (inside) addEntries(part, own, elsewhere);
    }
  }
  return { own, elsewhere };
}

function addEntries(text, own, elsewhere) {
  for (const [, name, other] of text.matchAll(
    new RegExp(`(?<![\\w.])(${tag})\\b(?: \\(([\\w./]+)\\))?`, 'g'),
  )) {
    if (other === undefined) own.add(name);
    else elsewhere.set(name, other);
  }
}

/** Tags in the comments of a body. */
function endsIn(lines) {
  const pattern = new RegExp(`\\b(${tag}) (release|acquire)\\b`, 'g');
  return lines.flatMap((text, index) => {
    const comment = text.indexOf('//');
    if (comment === -1) return [];
    const found = [...text.slice(comment).matchAll(pattern)];
    return found.map(([, name, end]) => ({ name, end, line: index + 1 }));
  });
}
