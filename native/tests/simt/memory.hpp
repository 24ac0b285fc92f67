// SPDX-License-Identifier: Apache-2.0
// Accesses that CUDA code makes by functions: streaming loads and stores, and atomics; addresses are multiples of the size.
#pragma once

#include "tests/simt/collectives.hpp"
#include "tests/simt/machine.hpp"

namespace nccl_ext::simt {

// Fails where an address is no multiple of the size.
void checkAligned(const void* place, std::size_t bytes);

// Before an atomic reads a word: others get a turn, always where the thread reads again what it has read.
void beforeRead(const void* word, std::uint64_t holds);
void beforeWrite();

template <class Word>
Word loadWord(const Word& word) {
  checkAligned(&word, sizeof word);
  beforeRead(&word, bitsOf(word));
  return word;
}

// `change` makes the new word of the old one, which is returned.
template <class Word, class Change>
Word changeWord(Word& word, Change change) {
  checkAligned(&word, sizeof word);
  beforeWrite();
  const Word old = word;
  word = change(old);
  return old;
}

}  // namespace nccl_ext::simt

template <class Unit>
Unit __ldcs(const Unit* at) {
  nccl_ext::simt::checkAligned(at, sizeof(Unit));
  return *at;
}
template <class Unit>
void __stcs(Unit* at, Unit value) {
  nccl_ext::simt::checkAligned(at, sizeof(Unit));
  *at = value;
}

template <class Word>
Word atomicAdd(Word* word, std::type_identity_t<Word> value) {
  return nccl_ext::simt::changeWord(*word, [=](Word old) { return static_cast<Word>(old + value); });
}
template <class Word>
Word atomicMin(Word* word, std::type_identity_t<Word> value) {
  return nccl_ext::simt::changeWord(*word, [=](Word old) { return value < old ? value : old; });
}
template <class Word>
Word atomicMax(Word* word, std::type_identity_t<Word> value) {
  return nccl_ext::simt::changeWord(*word, [=](Word old) { return old < value ? value : old; });
}
template <class Word>
Word atomicOr(Word* word, std::type_identity_t<Word> value) {
  return nccl_ext::simt::changeWord(*word, [=](Word old) { return old | value; });
}
