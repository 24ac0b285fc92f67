// SPDX-License-Identifier: Apache-2.0
// The transfer kernel against a host that makes the same moves byte by byte; then how fast it is. One GPU, no NCCL, no Node.
//
//   kernel_check check [rounds]     every byte of random programs, failures, and small copies of the measured shapes
//   kernel_check bench [bulk 0|1]   ms and share of the copy ceiling by CTAs per source rank
//
// Every wait in the kernels has a deadline, so nothing hangs; the caller limits the time all the same.
#include <algorithm>
#include <random>

#include "m2n/move_shape.hpp"
#include "m2n/shared/cast.hpp"
#include "one_gpu_world.cuh"
#include "shapes.hpp"

namespace nccl_ext::test {
namespace {

constexpr std::uint64_t kSpace = 4 << 20;  // of each rank's sources and of its destinations

// Both memories of a rank, on the GPU and on the host.
struct Memory {
  std::uint8_t* device = nullptr;
  std::vector<std::uint8_t> host;

  void allocate(std::uint64_t bytes) {
    CHECK_CUDA(cudaMalloc(&device, bytes));
    host.resize(bytes);
  }
  void push() { CHECK_CUDA(cudaMemcpy(device, host.data(), host.size(), cudaMemcpyHostToDevice)); }
  std::uint64_t address(std::uint64_t offset) const { return reinterpret_cast<std::uint64_t>(device) + offset; }
  std::uint8_t* at(std::uint64_t address) { return host.data() + (address - reinterpret_cast<std::uint64_t>(device)); }
  bool holds(std::uint64_t address) const { return address - reinterpret_cast<std::uint64_t>(device) < host.size(); }
};

struct Memories {
  std::vector<Memory> sources, destinations;

  explicit Memories(int ranks, std::uint64_t bytes) : sources(ranks), destinations(ranks) {
    for (Memory& memory : sources) memory.allocate(bytes);
    for (Memory& memory : destinations) memory.allocate(bytes);
  }
  ~Memories() {
    for (Memory& memory : sources) cudaFree(memory.device);
    for (Memory& memory : destinations) cudaFree(memory.device);
  }
  std::uint8_t* at(std::uint64_t address) {
    for (auto* side : {&sources, &destinations}) {
      for (Memory& memory : *side) {
        if (memory.holds(address)) return memory.at(address);
      }
    }
    std::printf("an address outside of every memory\n");
    std::exit(1);
  }
};

// The oracle.
void move(Memories& memories, const Move& move) {
  const std::uint64_t from = sourceBytes(move), to = destinationBytes(move);
  std::uint64_t index[3];
  for (index[0] = 0; index[0] < move.counts[0]; index[0]++)
    for (index[1] = 0; index[1] < move.counts[1]; index[1]++)
      for (index[2] = 0; index[2] < move.counts[2]; index[2]++) {
        std::uint64_t source = move.source, destination = move.destination;
        for (int loop = 0; loop < 3; loop++) {
          source += index[loop] * static_cast<std::uint64_t>(move.sourceStrides[loop]);
          destination += index[loop] * static_cast<std::uint64_t>(move.destinationStrides[loop]);
        }
        if (move.transform == 0) {
          std::memcpy(memories.at(destination), memories.at(source), move.inner);
          continue;
        }
        for (std::uint64_t i = 0; i < move.inner; i++) {
          std::uint64_t bits = 0;
          std::memcpy(&bits, memories.at(source + i * from), from);
          bits = castBits(static_cast<DType>((move.transform - 1) / 32), static_cast<DType>((move.transform - 1) % 32),
                          bits);
          std::memcpy(memories.at(destination + i * to), &bits, to);
        }
      }
}

struct Generator {
  std::mt19937_64 random;
  std::vector<std::uint64_t> sourceEnd, destinationEnd;

  std::uint64_t pick(std::uint64_t below) { return random() % below; }
  // Room at the end of one memory, at any alignment or at 256 bytes; none when it is full.
  bool take(std::vector<std::uint64_t>& ends, int rank, std::uint64_t bytes, bool aligned, std::uint64_t& offset) {
    offset = (ends[rank] + 255) / 256 * 256 + (aligned ? 0 : pick(256));
    if (offset + bytes > kSpace) return false;
    ends[rank] = offset + bytes + pick(64);
    return true;
  }
};

std::uint16_t anyCast(Generator& generator) {
  const int from = static_cast<int>(generator.pick(6));
  return castTransform(static_cast<DType>(from), static_cast<DType>((from + 1 + generator.pick(5)) % 6));
}

// One tensor of a rank, cut in columns among random ranks.
void addTensor(Generator& g, Memories& memories, std::vector<RankMoves>& ranks, int rank) {
  const bool aligned = g.pick(3) > 0;
  const std::uint16_t transform = g.pick(4) == 0 ? anyCast(g) : std::uint16_t{0};
  Move shape;
  shape.transform = transform;
  const std::uint64_t from = sourceBytes(shape), to = destinationBytes(shape);
  const std::uint64_t unit = aligned ? std::uint64_t{1} << (4 + g.pick(5)) : 1 + g.pick(40);
  const std::uint64_t columns = 1 + g.pick(5), inner = unit * (1 + g.pick(g.pick(4) == 0 ? 300 : 6));
  const std::uint64_t pitch = columns * inner * from + (g.pick(2) == 0 ? 0 : unit * from);
  shape.counts = {1 + g.pick(3), 1 + g.pick(3), 1 + g.pick(g.pick(3) == 0 ? 200 : 12)};
  shape.inner = inner;
  const std::uint64_t runs = runsOf(shape);
  std::uint64_t source = 0, destination = 0;
  if (!g.take(g.sourceEnd, rank, pitch * runs, aligned, source)) return;
  const auto strides = [&](std::uint64_t row) {
    return std::array<std::int64_t, 3>{static_cast<std::int64_t>(row * shape.counts[1] * shape.counts[2]),
                                       static_cast<std::int64_t>(row * shape.counts[2]),
                                       static_cast<std::int64_t>(row)};
  };
  for (std::uint64_t column = 0; column < columns; column++) {
    for (std::uint64_t copies = 1 + g.pick(3) / 2; copies-- > 0;) {
      Move move = shape;
      move.peer = static_cast<int>(g.pick(ranks.size()));
      const std::uint64_t row = inner * to + (g.pick(2) == 0 ? 0 : unit * to);
      if (!g.take(g.destinationEnd, move.peer, row * runs, aligned, destination)) continue;
      move.source = memories.sources[rank].address(source + column * inner * from);
      move.destination = memories.destinations[move.peer].address(destination);
      move.sourceStrides = strides(pitch);
      move.destinationStrides = strides(row);
      ranks[rank].stages[0].push_back(move);
      // What arrived goes on to another rank.
      if (g.pick(4) != 0) continue;
      Move next;
      next.peer = static_cast<int>(g.pick(ranks.size()));
      next.inner = row * (runs - 1) + inner * to;
      std::uint64_t offset = 0;
      if (next.peer == move.peer || !g.take(g.destinationEnd, next.peer, next.inner, aligned, offset)) continue;
      next.source = move.destination;
      next.destination = memories.destinations[next.peer].address(offset);
      ranks[move.peer].stages[1].push_back(next);
    }
  }
}

bool same(Memories& memories) {
  std::vector<std::uint8_t> seen;
  for (std::size_t rank = 0; rank < memories.destinations.size(); rank++) {
    Memory& memory = memories.destinations[rank];
    seen.resize(memory.host.size());
    CHECK_CUDA(cudaMemcpy(seen.data(), memory.device, seen.size(), cudaMemcpyDeviceToHost));
    if (std::memcmp(seen.data(), memory.host.data(), seen.size()) == 0) continue;
    std::size_t at = 0, wrong = 0;
    for (std::size_t i = seen.size(); i-- > 0;) {
      if (seen[i] != memory.host[i]) at = i, wrong++;
    }
    std::printf("rank %zu: %zu bytes differ, first at %zu: %02x instead of %02x\n", rank, wrong, at, seen[at],
                memory.host[at]);
    return false;
  }
  return true;
}

bool executeAndCompare(Memories& memories, const std::vector<RankMoves>& ranks, const StageLimits& limits,
                       Generator& g) {
  World world(ranks, limits);
  for (int execution = 0; execution < 2; execution++) {
    for (Memory& memory : memories.sources) {
      for (std::size_t i = 0; i < memory.host.size(); i += 8) {
        const std::uint64_t value = g.random();
        std::memcpy(&memory.host[i], &value, 8);
      }
      memory.push();
    }
    for (Memory& memory : memories.destinations) {
      std::fill(memory.host.begin(), memory.host.end(), static_cast<std::uint8_t>(0xa5 + execution));
      memory.push();
    }
    for (int stage = 0; stage < kTransferStages; stage++) {
      for (const RankMoves& rank : ranks) {
        for (const Move& entry : rank.stages[stage]) move(memories, entry);
      }
    }
    if (!world.run() || !same(memories)) return false;
    for (int rank = 0; rank < world.size(); rank++) {
      std::uint64_t bytes = 0;
      for (const auto& stage : ranks[rank].stages) {
        for (const Move& entry : stage) bytes += entry.inner * destinationBytes(entry) * runsOf(entry);
      }
      const TransferCounts& counts = world.counts(rank);
      if (counts.completed == execution + 1u && counts.written == bytes * (execution + 1u)) continue;
      std::printf("rank %d counts %llu executions and %llu bytes instead of %llu\n", rank,
                  static_cast<unsigned long long>(counts.completed), static_cast<unsigned long long>(counts.written),
                  static_cast<unsigned long long>(bytes * (execution + 1u)));
      return false;
    }
  }
  return true;
}

bool checkRandom(int rounds, bool bulk) {
  for (int round = 0; round < rounds; round++) {
    const int size = 1 + round % 6;
    Memories memories(size, kSpace);
    Generator g{std::mt19937_64(1000 + static_cast<unsigned>(round)), std::vector<std::uint64_t>(size),
                std::vector<std::uint64_t>(size)};
    std::vector<RankMoves> ranks(size);
    for (int rank = 0; rank < size; rank++) {
      for (std::uint64_t tensor = g.pick(round % 5 == 0 ? 60 : 8); tensor-- > 0;) addTensor(g, memories, ranks, rank);
    }
    const StageLimits limits{static_cast<int>(1 + g.pick(16)), bulk};
    if (executeAndCompare(memories, ranks, limits, g)) continue;
    std::printf("round %d of %d ranks, at most %d CTAs, bulk %d\n", round, size, limits.ctas, bulk);
    return false;
  }
  std::printf("%d random programs, bulk %d: every byte is right\n", rounds, bulk);
  return true;
}

bool checkShapes(bool bulk) {
  Generator g{std::mt19937_64(5), {}, {}};
  for (Shape shape : shapes()) {
    shape.bytes = shape.run == 24 ? 4 * 24 * 4 * 5000 : std::min<std::uint64_t>(shape.bytes, 8 << 20);
    Memories memories(2 * kSides, shape.bytes);
    std::vector<RankMoves> ranks(2 * kSides);
    std::vector<std::uint64_t> to;
    for (int d = 0; d < kSides; d++) to.push_back(memories.destinations[kSides + d].address(0));
    for (int s = 0; s < kSides; s++) ranks[s].stages[0] = movesOf(shape, s, memories.sources[s].address(0), to);
    if (!executeAndCompare(memories, ranks, {8, bulk}, g)) return false;
  }
  std::printf("measured shapes, bulk %d: every byte is right\n", bulk);
  return true;
}

// A receiver that does not come: the sender's record names it, no byte is written, and what follows is skipped.
bool checkMissing(bool bulk) {
  Memories memories(2, 1 << 20);
  std::vector<RankMoves> ranks(2);
  Move move;
  move.peer = 1;
  move.source = memories.sources[0].address(0);
  move.destination = memories.destinations[1].address(0);
  move.inner = 1 << 20;
  ranks[0].stages[0] = {move};
  for (Memory& memory : memories.sources)
    std::fill(memory.host.begin(), memory.host.end(), std::uint8_t{7}), memory.push();
  for (Memory& memory : memories.destinations) memory.push();
  World world(ranks, {4, bulk}, 20'000'000);
  world.enqueue(0, world.stream(0));
  CHECK_CUDA(cudaDeviceSynchronize());
  DeviceStatus first = world.status(0);
  clear(const_cast<DeviceStatus&>(world.status(0)));
  world.enqueue(0, world.stream(0));
  world.enqueue(1, world.stream(1));
  CHECK_CUDA(cudaDeviceSynchronize());
  const bool right = first.code == static_cast<int>(ErrorCode::kTimeout) && first.peer == 1 &&
                     world.status(0).code == static_cast<int>(ErrorCode::kPoisoned) &&
                     world.status(1).code == static_cast<int>(ErrorCode::kTimeout) && world.status(1).peer == 0 &&
                     world.counts(0).completed == 0 && same(memories);
  std::printf("a missing receiver, bulk %d: %s (codes %d %d %d)\n", bulk, right ? "right" : "WRONG", first.code,
              world.status(0).code, world.status(1).code);
  return right;
}

class Stopwatch {
 public:
  Stopwatch() {
    CHECK_CUDA(cudaEventCreate(&begin_));
    CHECK_CUDA(cudaEventCreate(&end_));
  }
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  // Median ms of one of `steps` steps of `work`, on `stream`.
  template <class Work>
  double median(cudaStream_t stream, int steps, Work work) {
    std::vector<float> times;
    for (int repeat = 0; repeat < 6; repeat++) {
      CHECK_CUDA(cudaEventRecord(begin_, stream));
      work();
      CHECK_CUDA(cudaEventRecord(end_, stream));
      CHECK_CUDA(cudaEventSynchronize(end_));
      float ms = 0;
      CHECK_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
      if (repeat > 0) times.push_back(ms / static_cast<float>(steps));
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// `steps` executions on all ranks, forked from and joined to the stream of rank 0.
void enqueueSteps(World& world, int steps) {
  cudaEvent_t event;
  CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK_CUDA(cudaEventRecord(event, world.stream(0)));
  for (int rank = 1; rank < world.size(); rank++) CHECK_CUDA(cudaStreamWaitEvent(world.stream(rank), event, 0));
  for (int step = 0; step < steps; step++) {
    for (int rank = 0; rank < world.size(); rank++) world.enqueue(rank, world.stream(rank));
  }
  for (int rank = 1; rank < world.size(); rank++) {
    CHECK_CUDA(cudaEventRecord(event, world.stream(rank)));
    CHECK_CUDA(cudaStreamWaitEvent(world.stream(0), event, 0));
  }
  CHECK_CUDA(cudaEventDestroy(event));
}

double graphMs(World& world, Stopwatch& watch, int steps) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK_CUDA(cudaStreamBeginCapture(world.stream(0), cudaStreamCaptureModeThreadLocal));
  enqueueSteps(world, steps);
  CHECK_CUDA(cudaStreamEndCapture(world.stream(0), &graph));
  CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  const double ms = watch.median(world.stream(0), steps, [&] { CHECK_CUDA(cudaGraphLaunch(exec, world.stream(0))); });
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
  return ms;
}

bool bench(bool bulk) {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 30;
  std::uint8_t *from = nullptr, *to = nullptr;
  CHECK_CUDA(cudaMalloc(&from, kBytes));
  CHECK_CUDA(cudaMalloc(&to, 2 * kBytes));
  CHECK_CUDA(cudaMemset(from, 3, kBytes));
  Stopwatch watch;
  const double ceiling = watch.median(nullptr, 5, [&] {
    for (int i = 0; i < 5; i++) CHECK_CUDA(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, nullptr));
  });
  std::printf("copy of 1 GiB: %.3f ms; bulk %d\n", ceiling, bulk);
  for (const Shape& shape : shapes()) {
    // Bytes read and written, against twice those of the copy.
    const double bound = ceiling * static_cast<double>(shape.bytes + writtenBytes(shape)) / (2.0 * kBytes);
    std::printf("%-24s", shape.name.c_str());
    for (const int ctas : {4, 8, 16, 32}) {
      std::vector<RankMoves> ranks(2 * kSides);
      std::vector<std::uint64_t> shards;
      for (int d = 0; d < kSides; d++)
        shards.push_back(reinterpret_cast<std::uint64_t>(to) +
                         static_cast<std::uint64_t>(d) * writtenBytes(shape) / kSides);
      for (int s = 0; s < kSides; s++) {
        const std::uint64_t shard =
            reinterpret_cast<std::uint64_t>(from) + static_cast<std::uint64_t>(s) * shape.bytes / kSides;
        ranks[s].stages[0] = movesOf(shape, s, shard, shards);
      }
      World world(ranks, {ctas, bulk});
      const bool small = shape.bytes < (8 << 20);
      const int steps = small ? 100 : 5;
      const double ms = watch.median(world.stream(0), steps, [&] { enqueueSteps(world, steps); });
      std::printf("  %2d: %.4f ms (%.2f)", world.ctas(0), ms, ms / bound);
      if (small) std::printf(" graph %.4f", graphMs(world, watch, steps));
      std::fflush(stdout);
      if (!world.quiet()) return false;
    }
    std::printf("\n");
  }
  CHECK_CUDA(cudaFree(from));
  CHECK_CUDA(cudaFree(to));
  return true;
}

int runAll(int count, char** words) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  CHECK_CUDA(cudaSetDevice(0));
  bool bulk = false;
  CHECK_CUDA(preloadTransfer(bulk));
  const std::string what = count > 1 ? words[1] : "check";
  if (what == "bench") return bench(bulk && (count < 3 || std::atoi(words[2]) != 0)) ? 0 : 1;
  const int rounds = count > 2 ? std::atoi(words[2]) : 100;
  bool right = true;
  for (const bool engine : {false, true}) {
    if (engine && !bulk) continue;
    right = right && checkMissing(engine) && checkShapes(engine) && checkRandom(rounds, engine);
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace nccl_ext::test

int main(int count, char** words) {
  return nccl_ext::test::runAll(count, words);
}
