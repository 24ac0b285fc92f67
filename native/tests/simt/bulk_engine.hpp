// SPDX-License-Identifier: Apache-2.0
// The bulk copy engine and mbarriers: copies are made some time after they begin, in any order, at the latest when somebody waits.
//
// E1 A load's place in shared memory is garbage from the begin of the load until it is made; a load reads its source when it begins or
//    when it is made, a store its shared memory some time before wait_group.read lets the thread go on.
// E2 Addresses and sizes that are no multiples of 16, an mbarrier that was not initialised, a second arrival in one phase, more bytes
//    under way than an mbarrier counts, and threads that end before their copies are failures.
#pragma once

#include "tests/simt/thread.hpp"

namespace nccl_ext::simt {

// Makes a few copies that a CTA has under way.
void copySome(Cta& cta);

// What of the bulk engine the thread has not waited for; empty: nothing.
std::string unfinished(const Thread& thread);

// By CUDA threads; addresses of shared memory are those of SharedMemory.
std::uint32_t sharedAddress(const void* place);
void* sharedPlace(std::uint32_t address, std::size_t bytes);
void initialise(std::uint32_t barrier);
void expect(std::uint32_t barrier, std::uint32_t bytes);
void arrive(std::uint32_t barrier);
bool tryWait(std::uint32_t barrier, std::uint32_t parity);
void load(std::uint32_t to, std::uint64_t from, std::uint32_t bytes, std::uint32_t barrier);
void store(std::uint64_t to, std::uint32_t from, std::uint32_t bytes);
void commitGroup();
void waitGroups(std::size_t pending, bool read);

}  // namespace nccl_ext::simt
