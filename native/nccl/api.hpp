// SPDX-License-Identifier: Apache-2.0
// NCCL as a table of pointers into one library. The addon links no NCCL: with a second libnccl in the process the
// dynamic linker would bind calls to whichever came first, whatever version we checked.
#pragma once

#include <nccl.h>
#include <nccl_device/core.h>

#include <string>

namespace nccl_ext {

struct NcclApi {
#define NCCL_EXT_SYMBOL(name) decltype(&::name) name = nullptr;
#include "nccl/symbols.inc"
#undef NCCL_EXT_SYMBOL

  // Facts of the library that the pointers lead into.
  std::string path;   // as the dynamic linker has it
  int version = 0;    // ncclGetVersion: 10000 x major + 100 x minor + patch
  int cudaMajor = 0;  // that it was built with; 0 when it does not say
};

}  // namespace nccl_ext
