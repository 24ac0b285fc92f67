// SPDX-License-Identifier: Apache-2.0
// In place of runtime/bulk_ptx.cuh, for the machine of tests/simt. Fences of proxies do nothing: the machine has one way to memory.
#pragma once

#include "tests/simt/bulk_engine.hpp"
#include "tests/simt/collectives.hpp"

namespace nccl_ext::ptx {

inline std::uint32_t sharedAddress(const void* pointer) {
  return simt::sharedAddress(pointer);
}
inline bool electSync(simt::Site site = simt::Site::current()) {
  return simt::elect(site);
}
inline void mbarrierInit(std::uint64_t& barrier) {
  simt::initialise(sharedAddress(&barrier));
}
inline void mbarrierArriveExpectTx(std::uint64_t& barrier, std::uint32_t bytes) {
  simt::expect(sharedAddress(&barrier), bytes);
  simt::arrive(sharedAddress(&barrier));
}
inline void mbarrierExpectTx(std::uint64_t& barrier, std::uint32_t bytes) {
  simt::expect(sharedAddress(&barrier), bytes);
}
inline void mbarrierArrive(std::uint64_t& barrier) {
  simt::arrive(sharedAddress(&barrier));
}
inline bool mbarrierTryWait(std::uint64_t& barrier, std::uint32_t parity) {
  return simt::tryWait(sharedAddress(&barrier), parity);
}
inline void cpAsyncBulkLoad(std::uint32_t to, std::uint64_t from, std::uint32_t bytes, std::uint32_t barrier) {
  simt::load(to, from, bytes, barrier);
}
inline void cpAsyncBulkStore(std::uint64_t to, std::uint32_t from, std::uint32_t bytes) {
  simt::store(to, from, bytes);
}
inline void cpAsyncBulkCommitGroup() {
  simt::commitGroup();
}
template <int kPending>
void cpAsyncBulkWaitGroupRead() {
  simt::waitGroups(kPending, true);
}
inline void cpAsyncBulkWaitGroup() {
  simt::waitGroups(0, false);
}
inline void fenceProxyAsync() {}

}  // namespace nccl_ext::ptx
