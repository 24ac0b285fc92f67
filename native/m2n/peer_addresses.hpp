// SPDX-License-Identifier: Apache-2.0
// Where the memory of other ranks is for this one, once it has been found.
#pragma once

#include "m2n/routes.hpp"

namespace nccl_ext {

// Where this rank reaches the others, by rank; 0 where it has no business.
struct PeerAddresses {
  std::vector<std::uint64_t> controls;                   // control blocks
  std::vector<std::vector<std::uint64_t>> destinations;  // by rank and tensor: where the tensor is bound
  std::vector<std::uint64_t> sums;  // by rank: where sums that it sends arrive; 0: they are read there
  Routes routes;
};

}  // namespace nccl_ext
