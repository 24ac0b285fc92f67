// SPDX-License-Identifier: Apache-2.0
#include "runtime/status_text.hpp"

namespace nccl_ext {
namespace {

std::string nameOf(DeviceOp op) {
  switch (op) {
    case DeviceOp::kBarrier:
      return "barrier";
    case DeviceOp::kCopy:
      return "copy";
    case DeviceOp::kFill:
      return "fill";
    case DeviceOp::kUpload:
      return "upload";
    case DeviceOp::kDownload:
      return "download";
    case DeviceOp::kTransfer:
      return "transfer";
    case DeviceOp::kKernel:
    case DeviceOp::kNone:
      break;
  }
  return "kernel";
}

// Epochs of 2^63 and more read as negative numbers; none is ever reached.
RecordValue number(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

// A kernel of the user's may report these; anything else it wrote is a failure of its own.
bool mayReport(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kOutOfBounds:
    case ErrorCode::kTimeout:
    case ErrorCode::kAborted:
    case ErrorCode::kPoisoned:
    case ErrorCode::kRankLost:
      return true;
    default:
      return false;
  }
}

ErrorCode codeOf(const DeviceStatus& status) {
  const auto code = static_cast<ErrorCode>(status.code);
  const bool users = static_cast<DeviceOp>(status.op) == DeviceOp::kKernel;
  return users && !mayReport(code) ? ErrorCode::kKernel : code;
}

std::string skippedText(const DeviceStatus& status) {
  const bool ran = status.seen == static_cast<std::uint64_t>(Skipped::kRanAllTheSame);
  return ran ? " ran behind a failure, and what it wrote is not to be used" : " was skipped";
}

}  // namespace

ErrorRecord recordOf(const DeviceStatus& status, int rank, const std::string& since) {
  const ErrorCode code = codeOf(status);
  const std::string op = nameOf(static_cast<DeviceOp>(status.op));
  const std::string self = "rank " + std::to_string(rank), peer = "rank " + std::to_string(status.peer);
  const std::string others = status.missing > 1 ? " and " + std::to_string(status.missing - 1) + " more" : "";
  std::string detail = op + " failed on " + self;
  std::string help = "Dispose the ranks and make a new world.";
  if (code == ErrorCode::kTimeout) {
    detail = self + " waited too long in " + op + " for " + peer + others;
    help = "Check that every rank enqueues the same operations in the same order, or raise the timeout.";
  } else if (code == ErrorCode::kRankLost) {
    detail = self + " waited in " + op + " for " + peer + ", which was aborted or disposed";
  } else if (code == ErrorCode::kAborted) {
    detail = self + " was aborted before " + op + " was done";
  } else if (code == ErrorCode::kPoisoned) {
    detail = op + skippedText(status) + ": " + self + " is unusable since " + since;
  } else if (code == ErrorCode::kVerify) {
    // A transfer's record has the tensor and the stage where others count ranks.
    detail = "tensor " + std::to_string(status.missing / 2) +
             (status.missing % 2 == 0 ? " as sent by " : " as forwarded by ") + peer + " arrived on " + self +
             " with other bytes";
    help = "Send it again; if that fails too, suspect memory or a program that writes to the destination.";
  } else if (code == ErrorCode::kKernel || code == ErrorCode::kInvalidArgument || code == ErrorCode::kOutOfBounds) {
    const std::string about = status.peer >= 0 ? " about " + peer : "";
    detail = "a kernel of " + self + " reported an error" + about + ": it expected " + std::to_string(status.expected) +
             " and saw " + std::to_string(status.seen);
    help = "The kernel's own code says what the two numbers mean.";
  }
  return fail(code, op, detail)
      .ofRank(rank)
      .fromPeer(status.peer)
      .expecting(number(status.expected), number(status.seen))
      .helped(help);
}

}  // namespace nccl_ext
