// SPDX-License-Identifier: Apache-2.0
// The backend contract (core/src/contract/runtime.ts and m2n.ts) in C++: the same calls on handles, plain data in and out. One object per JavaScript environment.
//
// R1 Every method runs on the owner's thread; `Done` callbacks too, through the mailbox or before the call returns.
// R2 Methods of streams, events and graphs wait for nobody. Collective ones run on the rank's worker.
// R3 Nothing throws.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "m2n/prepare_part.hpp"
#include "runtime/handles.hpp"
#include "runtime/kernel_launch.hpp"
#include "runtime/mailbox.hpp"
#include "runtime/meeting.hpp"
#include "runtime/objects.hpp"
#include "runtime/poller.hpp"
#include "runtime/process.hpp"

namespace nccl_ext {

struct PrepareRequest;
struct TransferPath;
enum class SentState;

template <class T>
using Done = std::function<void(Outcome<T>)>;
using DoneStatus = std::function<void(Status)>;

struct LocalRanksConfig {
  int ranks = 0;
  std::vector<int> devices;  // by rank; empty: rank modulo the number of devices
  Timeout timeout{0};
  std::vector<int> sms = {};  // by rank; empty: chosen here, as 0 is
};

struct JoinConfig {
  int rank = 0;
  int worldSize = 0;
  int localRank = 0;
  int localWorldSize = 0;
  std::string address;
  int port = 0;
  std::string token;  // must be the same on all ranks; empty: none
  Timeout timeout{0};
  int sms = 0;  // of this rank; 0: chosen here
};

struct DeviceInfo {
  int index = 0;
  std::string name;
  std::string uuid;
  int multiprocessors = 0;
  int ranks = 0;     // of this world, on this device
  int smBudget = 0;  // SMs that the work in flight of this rank may hold
};

struct SplitRank {
  Handle handle = 0;
  int rank = 0;
  int size = 0;
};

// Names and words for people, in this order.
using Facts = std::vector<std::pair<std::string, std::string>>;

struct MemoryUsage {
  std::int64_t allocatedBytes = 0;
  std::int64_t reservedBytes = 0;
};

// Of all executions so far, as in contract/m2n.ts.
struct TransferProgress {
  std::int64_t writtenBytes = 0;
  std::int64_t completed = 0;
};

// Host memory of a copy; `keep` holds it until the stream has passed.
struct HostSpan {
  void* data = nullptr;
  std::size_t bytes = 0;
  std::shared_ptr<void> keep;
};

// Where a rank reaches every rank's part of a window.
struct WindowPeers {
  std::uint64_t table = 0;               // of base addresses by rank, in device memory; lives as long as the window
  std::vector<std::uint64_t> addresses;  // the same; 0 where only a network leads
};

struct RuntimeConfig {
  int cudaMajor = 0;    // the one the addon was built for
  std::string version;  // of the package
  NcclChoice nccl;
};

class Runtime {
 public:
  Runtime(RuntimeConfig config, std::function<void()> notify);
  // As shutdown().
  ~Runtime();

  Mailbox& mailbox() { return mailbox_; }
  // What `doctor` prints: driver, NCCL path and version. Empty before the first rank was made.
  Facts details() const;

  // worlds.cc
  void createLocalRanks(const LocalRanksConfig& config, Done<std::vector<Handle>> done);
  void joinRank(const JoinConfig& config, Done<Handle> done);
  // Ends everything at once: waits are aborted, threads joined. For the end of an environment.
  void shutdown();

  // ranks.cc
  Status abortRank(Handle rank, const std::string& reason);
  void disposeRank(Handle rank, DoneStatus done);
  std::optional<ErrorRecord> poisonOf(Handle rank);
  Outcome<DeviceInfo> deviceOf(Handle rank) const;
  Outcome<Facts> factsOf(Handle rank) const;
  void exchange(Handle rank, const std::string& topic, Bytes payload, Done<std::vector<Bytes>> done);

  // split.cc
  void splitRank(Handle rank, std::int64_t color, std::int64_t key, Done<std::optional<SplitRank>> done);

  // buffers.cc
  Outcome<Handle> allocate(Handle rank, std::int64_t bytes, MemoryKind kind);
  Status freeBuffer(Handle buffer);
  Outcome<std::uint64_t> bufferAddress(Handle buffer) const;
  MemoryUsage memoryUsage() const;
  Outcome<std::int64_t> availableMemoryOf(Handle rank) const;

  // foreign_memory.cc
  Outcome<Handle> wrapMemory(Handle rank, std::uint64_t address, std::int64_t bytes);
  Outcome<MemoryShare> exportMemory(Handle buffer);
  Outcome<Handle> importMemory(Handle rank, const MemoryShare& share);

  // windows.cc
  void registerWindow(Handle rank, Handle buffer, Done<Handle> done);
  Status freeWindow(Handle window);
  Outcome<WindowPeers> windowPeers(Handle window) const;

  // streams.cc
  Outcome<Handle> createStream(Handle rank);
  Status freeStream(Handle stream);
  int queued(Handle stream);
  void synchronize(Handle stream, DoneStatus done);
  Status enqueueBarrier(Handle stream);
  // Always refused; a call that waits for JavaScript would hold a hardware queue in which a peer's kernel may stand.
  Status enqueueHostCall(Handle stream);

  // foreign_streams.cc
  Outcome<Handle> wrapStream(Handle rank, std::uint64_t address);
  Outcome<std::uint64_t> streamAddress(Handle stream);

  // events.cc
  Outcome<Handle> createEvent(Handle rank);
  Status freeEvent(Handle event);
  Status recordEvent(Handle event, Handle stream);
  Status waitEvent(Handle stream, Handle event);
  Outcome<bool> queryEvent(Handle event) const;
  void synchronizeEvent(Handle event, DoneStatus done);
  Outcome<double> elapsedMs(Handle start, Handle end) const;

  // graphs.cc
  Status beginCapture(Handle stream);
  Outcome<Handle> endCapture(Handle stream);
  Status launchGraph(Handle graph, Handle stream);
  Status freeGraph(Handle graph);

  // kernels.cc
  void loadModule(Handle rank, Bytes image, Done<Handle> done);
  Status unloadModule(Handle module);
  Outcome<Handle> kernelOf(Handle module, const std::string& name);
  Status launchKernel(Handle stream, Handle kernel, KernelLaunch launch);

  // m2n/transfers.cc
  void prepareTransfer(Handle rank, PrepareConfig config, Done<Handle> done);
  Status enqueueTransfer(Handle transfer, Handle stream);
  TransferProgress progressOf(Handle transfer) const;
  std::vector<TransferPath> pathsOf(Handle transfer) const;
  void disposeTransfer(Handle transfer, DoneStatus done);

  // copies.cc
  Status enqueueCopy(Handle stream, Handle destination, std::int64_t destinationOffset, Handle source,
                     std::int64_t sourceOffset, std::int64_t bytes);
  Status enqueueFill(Handle stream, Handle buffer, std::int64_t offset, std::int64_t bytes, int value);
  Status enqueueUpload(Handle stream, Handle buffer, std::int64_t offset, HostSpan host);
  Status enqueueDownload(Handle stream, HostSpan host, Handle buffer, std::int64_t offset);

 private:
  using Rank = std::shared_ptr<RankState>;
  using Stream = std::shared_ptr<StreamState>;
  using Buffer = std::shared_ptr<BufferState>;

  // state.cc: the checks that nearly every call begins with
  Outcome<Rank> rankOf(Handle handle, const char* op) const;
  Outcome<Stream> streamOf(Handle handle, const char* op);
  Outcome<Buffer> bufferFor(Handle handle, const RankState& owner, std::int64_t offset, std::int64_t bytes,
                            const char* op) const;
  std::optional<ErrorRecord> unusable(const RankState& rank, const char* op) const;
  static ErrorRecord disposed(const RankState& rank);
  static ErrorRecord departure(const RankState& rank);
  void notice(RankState& rank);
  void poison(RankState& rank, const ErrorRecord& reason, bool byKernel = false);
  void watchLosses(const std::shared_ptr<World>& world, int rank);
  void tellLocals(World& world, int lost);

  // lost_records.cc
  void loseRecords(const RankState& rank);
  static bool loseRecordsOf(const StreamState& stream);
  void failWaits();

  // buffers.cc
  Handle addBuffer(const Rank& rank, DeviceMemory memory);
  void letGo(BufferState& buffer);
  void reap(BufferState& buffer);

  // streams.cc
  Outcome<Handle> addStream(const Rank& rank, CudaStream stream, const char* op);
  Status refuseMoreStreams(const RankState& rank, const char* op) const;
  Status admit(StreamState& stream, int entries, const char* op);
  Status commit(const Stream& stream, Operation operation, cudaError_t result, const char* op);
  Status commit(const Stream& stream, Operation operation, Status launched, const char* op);
  void retire(StreamState& stream);
  void failStream(StreamState& stream, const ErrorRecord& error);
  std::optional<ErrorRecord> takeError(StreamState& stream);
  void whenFinished(const Stream& stream, std::uint64_t ticket, std::function<void()> settle);
  DeviceStatus* boxOf(StreamState& stream) const;

  // foreign_streams.cc
  static Status refuseForeignCapture(cudaStream_t stream, const RankState& rank, const char* op);

  // kernels.cc
  void releaseModule(ModuleState& module);
  KernelGuard guardOf(StreamState& stream) const;

  // m2n/transfers.cc
  std::optional<ErrorRecord> resolveBindings(const RankState& rank, const std::string& name,
                                             const TensorBindings& bindings, PreparePart& part,
                                             Bindings& resolved) const;
  std::shared_ptr<PrepareRequest> prepareRequest(const RankState& rank, PrepareConfig config) const;
  static Status refuseSends(const RankState& rank, const std::vector<std::shared_ptr<PreparedTransfer>>& next,
                            const char* op);
  cudaError_t awaitTurns(StreamState& stream, const std::vector<std::shared_ptr<PreparedTransfer>>& next);
  static void takeTurns(StreamState& stream, const std::vector<std::shared_ptr<PreparedTransfer>>& transfers);
  static void forgetTurns(const StreamState& stream);
  void freeTransfer(const std::shared_ptr<PreparedTransfer>& transfer);
  void releaseTransfer(PreparedTransfer& transfer, bool drained);

  // m2n/watch_transfers.cc
  void watchSends(const std::shared_ptr<PreparedTransfer>& transfer);
  void endSends(PreparedTransfer& transfer, SentState state, const std::vector<int>& awaited);

  // copies.cc
  enum class Direction { kUpload, kDownload };
  Status enqueueHostCopy(Handle stream, Handle buffer, std::int64_t offset, HostSpan host, Direction direction);
  Outcome<std::shared_ptr<Staging>> stagingFor(StreamState& stream, std::size_t bytes);
  Status giveStaging(StreamState& stream);
  Guard guardFor(StreamState& stream, DeviceOp op) const;

  // worlds.cc
  Outcome<std::shared_ptr<World>> prepareWorld(int size, Timeout timeout, const char* op);
  void openRanks(std::vector<Rank> ranks, Done<std::vector<Handle>> done);
  void closeRanks(const std::shared_ptr<World>& world, std::function<void(Status)> done);
  void awaitDrained();

  // ranks.cc
  void abortWaits(RankState& rank, const ErrorRecord& reason);
  void disposeChildren(const Rank& rank, std::function<void(Status)> done);
  void disposeDrained(const Rank& rank, Status children);
  void whenIdle(const Rank& rank, std::function<void()> settle);
  void releaseGraphs(RankState& rank);
  void releaseObjects(RankState& rank);

  const RuntimeConfig config_;
  const NcclApi* api_ = nullptr;  // lives as long as the process
  int driverCuda_ = 0;
  std::vector<ProbedDevice> devices_;
  std::int64_t allocatedBytes_ = 0;
  std::shared_ptr<std::atomic<std::int64_t>> dyingBytes_;  // freed by the caller, not yet by the reaper
  bool down_ = false;
  Handles handles_;
  std::unordered_set<Rank> ranks_;
  Mailbox mailbox_;
  Poller poller_;
  std::unique_ptr<Worker> reaper_;  // frees device memory, which may wait for kernels
};

}  // namespace nccl_ext
