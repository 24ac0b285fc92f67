// SPDX-License-Identifier: Apache-2.0
// What stands behind each handle. The owner's thread alone touches it (runtime/mailbox.hpp), except where a comment
// says otherwise.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "m2n/reach.hpp"
#include "nccl/send_comm.hpp"
#include "runtime/device_memory.hpp"
#include "runtime/graph_condition.hpp"
#include "runtime/handles.hpp"
#include "runtime/identity.hpp"
#include "runtime/local_meeting.hpp"
#include "runtime/memory_share.hpp"
#include "runtime/module_state.hpp"
#include "runtime/pinned.hpp"
#include "runtime/probe_devices.hpp"
#include "runtime/shared/barrier.hpp"
#include "runtime/worker.hpp"

namespace nccl_ext {

struct CudaStreamDelete {
  bool owned = true;  // false: somebody else's stream
  void operator()(cudaStream_t stream) const {
    if (owned) (void)cudaStreamDestroy(stream);
  }
};
struct CudaEventDelete {
  void operator()(cudaEvent_t event) const { (void)cudaEventDestroy(event); }
};
struct CudaGraphDelete {
  void operator()(cudaGraphExec_t graph) const { (void)cudaGraphExecDestroy(graph); }
};
using CudaStream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, CudaStreamDelete>;
using CudaEvent = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, CudaEventDelete>;
using CudaGraph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, CudaGraphDelete>;

using Timeout = std::chrono::milliseconds;

// Of a stream. Pieces of this size take the largest typed array (2^32 bytes) with fewer entries than a stream's launch
// queue has.
inline constexpr std::size_t kStagingBytes = 10u << 20;

// What disposing and closing add to the deadline of work in flight.
inline constexpr Timeout kCloseGrace{5'000};

// The ranks that meet. Shared by the ranks of this process.
struct World {
  const NcclApi* api = nullptr;
  int size = 0;
  Timeout timeout{0};
  RankIdentity identity;  // of its ranks here, but for their GPUs and shares of them
  std::unique_ptr<Meeting> meeting;
  bool oneProcess = false;         // all of its ranks are in this one
  std::shared_ptr<World> parent;   // that it was split from
  std::vector<RankState*> locals;  // ranks of this process that have not been closed
  int open = 0;                    // ranks of this process that have not been disposed
  bool broken = false;             // a rank of this process failed: communicators are aborted, not closed
  // Worlds that are being split from this one, by name, for the workers of the ranks here.
  std::mutex partsMutex;
  std::map<std::string, std::weak_ptr<World>> parts;

  // The world that a launcher or createLocalRanks made.
  const World* root() const { return parent ? parent->root() : this; }
};

// What barriers need of a rank; its flags are a window that every peer can write.
struct ControlBlock {
  DeviceMemory flags;  // [size] BarrierFlag
  DeviceMemory peers;  // [size] BarrierFlag*, then one epoch
  ncclWindow_t window = nullptr;
  bool reachable = false;  // every peer's flags have an address here

  BarrierFlag* const* peerTable() const { return static_cast<BarrierFlag* const*>(peers.address()); }
  std::uint64_t* epoch(int size) const {
    return reinterpret_cast<std::uint64_t*>(static_cast<BarrierFlag**>(peers.address()) + size);
  }
};

// Pinned memory through which pageable host memory comes and goes.
struct Staging {
  PinnedMemory memory;
  std::size_t bytes = 0;

  static Outcome<std::shared_ptr<Staging>> allocate(std::size_t bytes);
};

struct RankState {
  Handle handle = 0;
  int rank = 0;
  int device = 0;
  ProbedDevice gpu;
  std::shared_ptr<World> world;
  std::optional<ErrorRecord> poison;
  bool poisonedByKernel = false;  // whose record tells why, on its own stream
  bool opened = false;            // its worker has made what follows, which is the owner's from then on
  bool disposing = false;
  int preparing = 0;   // transfers that its worker prepares
  int ranksOnGpu = 0;  // of the root world, and the share of this one
  int smsAsked = 0;    // 0: the default share
  int smBudget = 0;
  ncclCommProperties properties{};
  std::unique_ptr<PinnedCells> cells;
  CudaEvent lastBarrier;                 // of any stream; the next barrier waits for it
  StreamState* barrierStream = nullptr;  // where it was recorded
  bool bulkCopies = false;               // its GPU has an engine for them
  std::shared_ptr<const GraphCondition> condition;
  std::unordered_set<StreamState*> streams;
  std::unordered_set<BufferState*> buffers;
  std::unordered_set<WindowState*> windows;
  std::unordered_set<EventState*> events;
  std::unordered_set<GraphState*> graphs;
  std::unordered_set<ModuleState*> modules;
  std::unordered_set<PreparedTransfer*> transfers;
  std::weak_ptr<RankState> parent;                          // that it was split from
  std::unordered_set<std::shared_ptr<RankState>> children;  // also those that are still being opened, without a world
  std::vector<std::function<void(Status)>> disposeWaiters;
  // Left by disposed objects for the end of the communicator: peers may still reach them.
  std::vector<DeviceMemory> oldMemory;
  std::int64_t oldBytes = 0;                           // of the user's, in `oldMemory`
  std::vector<std::shared_ptr<Staging>> spareStaging;  // for the next streams; one from the beginning
  std::vector<LoadedModule> oldModules;
  std::vector<std::shared_ptr<const void>> oldHolds;

  // Touched by the rank's worker; by the owner only while no task is posted.
  std::atomic<bool> stop{false};
  int splits = 0;  // made so far
  Mappings mappings;
  ControlBlock control;
  std::unique_ptr<Comm> comm;  // ends before the memory of its windows
  SendComm sends;              // for transfers; open once one needs it
  // Last: it ends before what its tasks use.
  std::unique_ptr<Worker> worker;
};

struct BufferState {
  Handle handle = 0;
  std::shared_ptr<RankState> owner;
  DeviceMemory memory;
  int inFlight = 0;  // queued operations that use it
  int windows = 0;
  int graphs = 0;  // also those that are being recorded, once for each use
  int transfers = 0;
  bool exposed = false;              // a transfer told peers where it is, or NCCL did not finish with it
  int leaving = 0;                   // windows that were freed and that NCCL has not let go of
  bool freed = false;                // by the user; the memory goes when no window is leaving
  std::optional<Exported> exported;  // once asked for; its descriptor stays open until the buffer is freed

  std::uint8_t* at(std::size_t offset) const { return static_cast<std::uint8_t*>(memory.address()) + offset; }
};

struct WindowState {
  Handle handle = 0;
  std::shared_ptr<RankState> owner;
  std::shared_ptr<BufferState> buffer;
  ncclWindow_t window = nullptr;
  std::vector<void*> peers;  // by rank: where this rank reaches its part; null where only a network does
  DeviceMemory table;        // `peers`, for kernels
};

// Why a record is no work done: the rank that had enqueued it failed or was aborted first.
struct LostRecord {
  std::weak_ptr<World> world;
  int rank = -1;    // there
  int origin = -1;  // in the world that the others were split from
  int cause = -1;   // whom that rank had lost itself, -1: nobody
};

// One record of an event, of a stream or of a graph's launch.
struct EventRecord {
  std::optional<LostRecord> lost;
};

// The most recent record of an event; also of graphs, which record and wait with every launch.
struct EventRecords {
  std::shared_ptr<EventRecord> last;
};

// Things that must live until work has passed.
using Keeps = std::vector<std::shared_ptr<void>>;

// One operation that has been put on a stream.
struct Operation {
  std::uint64_t ticket = 0;
  int entries = 0;  // of the stream's launch queue
  std::vector<std::shared_ptr<BufferState>> buffers;
  std::shared_ptr<GraphState> graph;
  Keeps keeps;
  std::vector<std::shared_ptr<EventRecord>> records;
  std::vector<std::shared_ptr<EventRecord>> awaits;  // of other ranks
};

// What a stream records between beginCapture and endCapture.
struct Capture {
  DeviceStatus* box = nullptr;
  std::vector<std::shared_ptr<BufferState>> buffers;
  Keeps keeps;
  bool hasBarrier = false;
  std::vector<std::shared_ptr<PreparedTransfer>> transfers;
  std::vector<std::shared_ptr<EventRecords>> records;
  std::vector<std::shared_ptr<EventRecords>> awaits;  // of other ranks

  // Gives up what the graph uses.
  void release();
};

struct StreamState {
  Handle handle = 0;
  std::shared_ptr<RankState> owner;
  CudaStream stream;
  bool shared = false;  // others know it too, and may record a graph with it
  DeviceStatus* box = nullptr;
  std::optional<ErrorRecord> error;  // found by the host, not yet handed out
  std::vector<CudaEvent> marks;      // one per place of the queue, made when first needed
  std::deque<Operation> queue;       // unfinished, oldest first
  std::uint64_t enqueued = 0;        // tickets given out
  int entries = 0;                   // of the launch queue, in `queue`
  std::vector<std::pair<std::uint64_t, std::function<void()>>> waiters;  // by ticket
  std::vector<std::shared_ptr<GraphState>> launched;  // since the last synchronize; their boxes may hold records
  std::shared_ptr<Staging> staging;
  std::optional<Capture> capture;

  std::uint64_t finished() const { return enqueued - queue.size(); }
  cudaEvent_t mark(std::uint64_t ticket) const { return marks[ticket % kMaxQueuedOperations].get(); }
};

struct EventState {
  Handle handle = 0;
  std::shared_ptr<RankState> owner;
  std::shared_ptr<CudaEvent> event;  // graphs that record it share it
  std::shared_ptr<EventRecords> records = std::make_shared<EventRecords>();
  bool recorded = false;
};

struct GraphState {
  Handle handle = 0;
  std::shared_ptr<RankState> owner;
  CudaGraph graph;
  Capture content;
  int inFlight = 0;
};

}  // namespace nccl_ext
