// SPDX-License-Identifier: Apache-2.0
// What kind of image a user gave, and whether it is whole: the driver gets a pointer without a size, and would read
// past the end of a file that was cut off.
#pragma once

#include "runtime/error.hpp"
#include "runtime/meeting.hpp"

namespace nccl_ext {

inline constexpr std::size_t kMaxImageBytes = std::size_t{256} << 20;

// Changes `image` into what the driver takes: a cubin or fat binary as it is, PTX with a zero at its end.
// ERR_INVALID_ARGUMENT: empty or above kMaxImageBytes. ERR_MODULE: of no known kind, for another machine, or cut off.
Status prepareImage(Bytes& image);

}  // namespace nccl_ext
