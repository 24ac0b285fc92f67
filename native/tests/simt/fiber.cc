// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

extern "C" void nccl_ext_simt_switch(void** from, void* to);

// Saves what the ABI says that a call keeps, and takes the other stack.
#if defined(__x86_64__)
asm(R"(
.text
.globl nccl_ext_simt_switch
.type nccl_ext_simt_switch, @function
nccl_ext_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size nccl_ext_simt_switch, . - nccl_ext_simt_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl nccl_ext_simt_switch
.type nccl_ext_simt_switch, %function
nccl_ext_simt_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size nccl_ext_simt_switch, . - nccl_ext_simt_switch
)");
#else
#error "no switch of stacks for this CPU"
#endif

namespace nccl_ext::simt {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStackBytes = 256 << 10;
#else
constexpr std::size_t kStackBytes = 64 << 10;
#endif
constexpr std::size_t kGuardBytes = 4096;
// Stacks that begin at the same place of a page would share few lines of the cache.
constexpr std::size_t kColours = 61, kColourBytes = 128;

Fiber* running = nullptr;
void* resumerTop = nullptr;
// Of the thread that resumes, as AddressSanitizer gives it.
[[maybe_unused]] const void* resumerStack = nullptr;
[[maybe_unused]] std::size_t resumerBytes = 0;
std::vector<std::unique_ptr<Fiber>> kept;

}  // namespace

Fiber::Fiber() {
  void* memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0) std::abort();
  stack_ = static_cast<std::byte*>(memory) + kGuardBytes;
  static std::size_t fibers = 0;
  begin_ = kStackBytes - fibers++ % kColours * kColourBytes;
}

Fiber::~Fiber() {
  munmap(stack_ - kGuardBytes, kGuardBytes + kStackBytes);
}

void Fiber::start(std::function<void()> body) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
  body_ = std::move(body);
  ended_ = false;
  // As if the switch had been called at the begin of enter().
#if defined(__x86_64__)
  auto* words = reinterpret_cast<std::uint64_t*>(stack_ + begin_) - 8;
  for (int i = 0; i < 8; i++) words[i] = 0;
  words[6] = reinterpret_cast<std::uint64_t>(&Fiber::enter);  // behind it the stack is 8 above a multiple of 16
  top_ = words;
#else
  auto* words = reinterpret_cast<std::uint64_t*>(stack_ + begin_) - 20;
  for (int i = 0; i < 20; i++) words[i] = 0;
  words[11] = reinterpret_cast<std::uint64_t>(&Fiber::enter);
  top_ = words;
#endif
}

void Fiber::resume() {
  running = this;
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack_, kStackBytes);
  nccl_ext_simt_switch(&resumerTop, top_);
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
  nccl_ext_simt_switch(&resumerTop, top_);
#endif
  running = nullptr;
}

void Fiber::leave(bool forGood) {
  Fiber& self = *running;
  (void)forGood;
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(forGood ? nullptr : &fake, resumerStack, resumerBytes);
  nccl_ext_simt_switch(&self.top_, resumerTop);
  __sanitizer_finish_switch_fiber(fake, &resumerStack, &resumerBytes);
#else
  nccl_ext_simt_switch(&self.top_, resumerTop);
#endif
}

void Fiber::pause() {
  leave(false);
}

void Fiber::enter() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &resumerStack, &resumerBytes);
#endif
  running->body_();
  running->ended_ = true;
  leave(true);
  std::abort();
}

std::unique_ptr<Fiber> takeFiber() {
  if (kept.empty()) return std::make_unique<Fiber>();
  std::unique_ptr<Fiber> fiber = std::move(kept.back());
  kept.pop_back();
  return fiber;
}

void keepFiber(std::unique_ptr<Fiber> fiber) {
  kept.push_back(std::move(fiber));
}

}  // namespace nccl_ext::simt
