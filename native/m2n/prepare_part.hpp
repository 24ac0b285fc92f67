// SPDX-License-Identifier: Apache-2.0
// What one rank brings to prepareTransfer, checked as far as it can be without the others.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "m2n/move_table.hpp"
#include "m2n/staging_rounds.hpp"
#include "runtime/error.hpp"
#include "runtime/handles.hpp"

namespace nccl_ext {

inline constexpr const char* kPrepareOp = "prepareTransfer";

// Where the tensors of a plan live on one rank, as contract/m2n.ts has it: handles and offsets by tensor.
struct TensorBindings {
  std::vector<std::int64_t> buffer;
  std::vector<std::int64_t> byteOffset;
};

// How pairs of ranks exchange bytes: by writing where they can, always so, or never.
enum class PathChoice { kAuto, kMapped, kSendrecv };

// `path` of PrepareConfig in contract/m2n.ts; an empty text is the default. None for anything else.
std::optional<PathChoice> pathChoiceOf(const std::string& path);

struct PrepareConfig {
  TransferProgram program;
  TensorBindings sources;
  TensorBindings destinations;
  bool verify = false;
  std::optional<int> sms = std::nullopt;  // of this rank, for the transfer's kernels; 0: copy engines alone
  std::string path;
  StagingLimits staging;  // of what is sent; not the caller's, but for tests
};

// SMs that kernels of a transfer may hold: grants and arrivals take one even where engines copy.
inline int smsOf(int budget, const std::optional<int>& asked) {
  return asked ? std::max(1, *asked) : budget;
}

// Where a tensor lives.
struct BoundTensor {
  std::int32_t memory = -1;  // index of the part's memories; -1: this rank does not hold it
  std::int64_t byteOffset = 0;
};
using Bindings = std::vector<BoundTensor>;

// A buffer that bindings lead to.
struct BoundMemory {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
};

struct PreparePart {
  int rank = 0;
  std::shared_ptr<const TransferProgram> program;
  Bindings sources;
  Bindings destinations;
  std::vector<BoundMemory> memories;
  std::vector<std::shared_ptr<BufferState>> buffers;  // of `memories`
  std::unordered_map<const BufferState*, std::int32_t> memoryOf;
  bool verify = false;
  std::string path = "auto";
};

// Why a program cannot be the one of `rank` in a world of `size` ranks, whatever the others bring. ERR_INVALID_ARGUMENT.
std::optional<ErrorRecord> programProblem(const TransferProgram& program, bool verify, int rank, int size);

}  // namespace nccl_ext
