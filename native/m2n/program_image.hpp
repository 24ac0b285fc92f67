// SPDX-License-Identifier: Apache-2.0
// The bytes of a StageProgram as one block, to be copied to the device in one go.
#pragma once

#include <cstddef>
#include <vector>

#include "m2n/bundle_moves.hpp"

namespace nccl_ext {

struct ProgramImage {
  std::vector<std::byte> bytes;  // to a device address that is a multiple of 16
  TransferWork work;             // offsets in place of addresses
};

ProgramImage imageOf(const StageProgram& program);

// The work of an image whose bytes were copied to `address`.
TransferWork workAt(const ProgramImage& image, const void* address);

}  // namespace nccl_ext
