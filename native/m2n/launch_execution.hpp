// SPDX-License-Identifier: Apache-2.0
// What one execution of a transfer puts on a stream.
#pragma once

#include "m2n/device_program.hpp"

namespace nccl_ext {

inline constexpr const char* kTransferOp = "transfer";

// What belongs to a launch: whose failure it is, and where that is told.
struct LaunchPlace {
  TransferCounts* counts;
  DeviceStatus* status;
  RankWords* words;
  std::uint64_t timeoutNs;
  SendComm& sends;
};

// Of the launch queue: the kernels of an execution, and the event behind them.
int entriesOf(const DeviceProgram& program);

// `ctas`: of the kernels that hash, at most. `captures`: the stream records a graph. A failure of NCCL leaves its record, and a
// part of the execution is launched.
Status launchExecution(const DeviceProgram& program, const LaunchPlace& place, int ctas, cudaStream_t stream,
                       bool captures);

}  // namespace nccl_ext
