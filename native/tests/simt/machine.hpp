// SPDX-License-Identifier: Apache-2.0
// Runs grids on the host: every CUDA thread is a fiber, all on one thread of the host, and which one runs next is drawn from a seed, so
// that a failure comes again.
//
// M1 Threads change at warp collectives, CTA barriers, atomics and waits for the bulk copy engine, and nowhere else.
// M2 A collective is a meeting: all lanes of its mask must come to the same line with the same mask. A lane that has ended or waits
//    elsewhere is a failure at once.
// M3 Grids of one stream run one after the other, of several streams at once, their CTAs started in order.
// M4 Time is virtual: 100 ns pass each time that a thread gets its turn.
// M5 After a failure nothing runs any more; what the machine held is forgotten at the next reset.
#pragma once

#include <random>

#include "tests/simt/thread.hpp"

namespace nccl_ext::simt {

struct Launch {
  dim3 grid;
  dim3 block;
  std::size_t sharedBytes = 0;
  cudaStream_t stream = nullptr;
};

class Machine {
 public:
  // `patience`: turns without anything moving that are a failure; as a rule longer than any deadline of a kernel.
  void reset(std::uint64_t seed, std::uint64_t patience = 60'000'000);
  void enqueue(const Launch& launch, std::function<void()> kernel);

  // Until all grids are done, or for so many rounds, in each of which nearly every thread gets a turn. What went wrong; empty: nothing.
  const std::string& run(std::uint64_t rounds = ~std::uint64_t{0});
  const std::string& problem() const { return problem_; }
  bool idle() const;

  // From CUDA threads.
  void yield();
  // Something changed that others may wait for.
  void moved() { still_ = 0; }
  [[noreturn]] void fail(const std::string& text);
  Thread* current() { return current_; }
  std::uint64_t now() const { return now_; }

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  // How readily copies of the bulk engine are made before anybody waits for them, of 16.
  std::uint64_t eagerness() const { return eagerness_; }

  // Lets a thread that waited go on.
  void wake(Thread& thread);
  void block(const Meeting& meeting);

 private:
  struct Grid {
    Launch launch;
    std::function<void()> kernel;
    std::uint64_t started = 0, ended = 0;
    std::uint64_t ctas() const { return std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z; }
  };
  struct Resident {
    std::unique_ptr<Cta> cta;
    Grid* grid;
  };

  // Each: whether anything happened.
  bool startCtas();
  void startCta(Grid& grid);
  bool round();
  void runWarp(Warp& warp);
  void resume(Thread& thread);
  bool retire();
  std::string blockedThreads() const;

  std::mt19937_64 random_{1};
  std::map<cudaStream_t, std::deque<Grid>> streams_;
  std::vector<Resident> resident_;
  std::uint64_t residentThreads_ = 0;
  Thread* current_ = nullptr;
  std::uint64_t now_ = 1'000'000;
  std::uint64_t still_ = 0;  // turns since something moved
  std::uint64_t patience_ = 60'000'000;
  std::uint64_t eagerness_ = 4;
  std::string problem_;
};

// The one of this process.
Machine& machine();

}  // namespace nccl_ext::simt
