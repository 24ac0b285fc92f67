// SPDX-License-Identifier: Apache-2.0
// The kernels of a transfer's stage on a host thread: the same program and protocol, tile by tile, one thread for all CTAs.
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "m2n/gate.hpp"
#include "m2n/shared/cast.hpp"
#include "m2n/shared/piece.hpp"
#include "m2n/shared/transfer.hpp"
#include "m2n/transfer.hpp"
#include "tests/fake/fake_cudart.hpp"

namespace nccl_ext {
namespace {

// Asked by who waits: cores are few, and the peer needs one.
std::uint64_t nanoseconds() {
  std::this_thread::sleep_for(std::chrono::microseconds(20));
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

void castElements(std::uint16_t transform, std::uint64_t from, std::uint64_t to, std::uint64_t count) {
  const int source = (transform - 1) / 32, destination = (transform - 1) % 32;
  for (std::uint64_t i = 0; i < count; i++) {
    // Little-endian, like every platform of ours.
    std::uint64_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const void*>(from + i * kDTypeBytes[source]), kDTypeBytes[source]);
    bits = castBits(static_cast<DType>(source), static_cast<DType>(destination), bits);
    std::memcpy(reinterpret_cast<void*>(to + i * kDTypeBytes[destination]), &bits, kDTypeBytes[destination]);
  }
}

class Stage {
 public:
  explicit Stage(const TransferArgs& args) : args_(args), epoch_(args.state->epoch + 1) {}

  void run() {
    const bool runs = mayRun(args_, skipReason(guardOf(args_)));
    admit(args_, epoch_, runs);
    if (runs) work();
    end();
  }

  void gate() {
    if (!mayRun(args_, skipReason(guardOf(args_)))) return;
    grantSenders();
    awaitReceivers();
  }

  void settle(std::uint64_t bytes) {
    if (args_.state->failed == 0) {
      countWritten(bytes);
      exchangeArrivals();
    }
    end();
  }

 private:
  void work() {
    grantSenders();
    if (copyPart(args_.work.bulk) && copyPart(args_.work.vector) && awaitReceivers()) exchangeArrivals();
  }

  void end() {
    closeStage(args_);
    endStage(args_, epoch_, args_.state->failed != 0, args_.state->completed);
  }

  void grantSenders() {
    for (int i = 0; args_.stage == 0 && i < args_.granteeCount; i++) grant(args_, args_.grantees[i], epoch_);
  }

  bool awaitReceivers() {
    for (int i = 0; i < args_.receiverCount; i++) {
      if (!mayWrite(args_.receivers[i])) return false;
    }
    return true;
  }

  void countWritten(std::uint64_t bytes) {
    TransferCell& progress = args_.controls[args_.rank][progressCell(args_.size)];
    publish<kSystem>(progress.value, progress.value + bytes);
    publish<kSystem>(args_.counts->written, progress.value);
  }

  void exchangeArrivals() {
    for (int i = 0; i < args_.receiverCount; i++) arrive(args_, args_.receivers[i], epoch_);
    awaitSenders();
  }

  void awaitSenders() {
    int first = -1, missing = 0;
    WaitEnd worst = WaitEnd::kArrived;
    for (int i = 0; i < args_.senderCount; i++) {
      const WaitEnd end = awaitArrival(args_, args_.senders[i], epoch_, nanoseconds);
      if (end == WaitEnd::kArrived) continue;
      if (missing++ == 0) first = args_.senders[i];
      worst = std::max(worst, end);
      // A stopped rank waits for nobody; nobody else comes in time either.
      if (end == WaitEnd::kStopped) break;
    }
    if (missing == 0) return;
    TransferCell& cell = args_.controls[args_.rank][arrivalCell(args_.size, args_.stage, first)];
    failTransfer(args_, worst, first, missing, epoch_, peek<kSystem>(cell.value));
  }

  // Once per execution and receiver.
  bool mayWrite(int peer) {
    if (peer == args_.rank || granted_[peer]) return true;
    const WaitEnd end = awaitGrant(args_, peer, epoch_, nanoseconds);
    granted_[peer] = end == WaitEnd::kArrived;
    if (granted_[peer]) return true;
    TransferCell& cell = args_.controls[args_.rank][grantCell(peer)];
    failTransfer(args_, end, peer, 1, epoch_, peek<kSystem>(cell.value));
    return false;
  }

  bool copyPart(const PartWork& part) {
    for (std::uint32_t bundle = 0; bundle < part.bundleCount; bundle++) {
      for (std::uint32_t tile = 0; tile < part.bundles[bundle].tiles; tile++) {
        if (!copyTile(part.bundles[bundle], tile)) return false;
      }
    }
    return true;
  }

  bool copyTile(const Bundle& bundle, std::uint32_t tile) {
    const TileSpan span = spanOf(bundle, tile);
    std::uint64_t written = 0;
    for (std::uint32_t piece = span.firstPiece; piece < span.firstPiece + span.pieces; piece++) {
      const Place place = placeOf(bundle, piece);
      for (std::uint32_t copy = 0; copy < bundle.copies; copy++) {
        const Member& member = args_.work.members[bundle.firstMember + place.column * bundle.copies + copy];
        if (!mayWrite(member.peer)) return false;
        const std::uint64_t from = member.source + distanceTo(place, bundle.strides) + span.offset * bundle.sourceUnit;
        const std::uint64_t to =
            member.destination + distanceTo(place, member.strides) + span.offset * bundle.destinationUnit;
        if (bundle.transform == 0)
          std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), span.units * bundle.sourceUnit);
        else
          castElements(bundle.transform, from, to, span.units);
        written += std::uint64_t{span.units} * bundle.destinationUnit;
      }
    }
    if (args_.counted != 0) countWritten(written);
    return true;
  }

  const TransferArgs args_;
  const std::uint64_t epoch_;
  std::map<int, bool> granted_;
};

}  // namespace

cudaError_t launchTransfer(const TransferArgs& args, cudaStream_t stream) {
  return fake::launch(stream, [args] { Stage(args).run(); });
}

cudaError_t launchGate(const TransferArgs& args, cudaStream_t stream) {
  return fake::launch(stream, [args] { Stage(args).gate(); });
}

cudaError_t launchSettle(const TransferArgs& args, std::uint64_t bytes, cudaStream_t stream) {
  return fake::launch(stream, [args, bytes] { Stage(args).settle(bytes); });
}

cudaError_t preloadGate() {
  return cudaSuccess;
}

cudaError_t preloadTransfer(bool& bulk) {
  bulk = true;
  return cudaSuccess;
}

}  // namespace nccl_ext
