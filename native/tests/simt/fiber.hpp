// SPDX-License-Identifier: Apache-2.0
// A stack of its own for each CUDA thread, and the switch to it and back. Not ucontext: that asks the kernel for the signal mask at
// every switch, of which a test makes millions.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace nccl_ext::simt {

class Fiber {
 public:
  Fiber();
  Fiber(const Fiber&) = delete;
  ~Fiber();

  // `body` runs at the first resume; what ran before and has not ended is forgotten, without its destructors.
  void start(std::function<void()> body);
  // Runs the fiber until it pauses or ends. Not from within a fiber.
  void resume();
  // Back to who resumed the fiber that runs.
  static void pause();

  bool ended() const { return ended_; }

 private:
  static void enter();
  static void leave(bool forGood);

  std::byte* stack_;
  std::size_t begin_;    // of what is used, from the upper end
  void* top_ = nullptr;  // of the stack while the fiber does not run
  bool ended_ = true;
  std::function<void()> body_;
};

// Fibers that have ended, for later threads: mapping a stack costs more than most threads do.
std::unique_ptr<Fiber> takeFiber();
void keepFiber(std::unique_ptr<Fiber> fiber);

}  // namespace nccl_ext::simt
