// SPDX-License-Identifier: Apache-2.0
#include "runtime/descriptor.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <utility>

namespace nccl_ext {
namespace {

// Linux 5.3 and 5.6; glibc has functions for them from 2.36 on.
int openProcess(std::int64_t process) {
  return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0u));
}
int takeDescriptor(int process, int descriptor) {
  return static_cast<int>(syscall(SYS_pidfd_getfd, process, descriptor, 0u));
}

constexpr const char* kSendIt =
    "Send the descriptor over a Unix socket (SCM_RIGHTS) and import what arrives without processId, or allow this "
    "process "
    "to trace the other one (kernel.yama.ptrace_scope, CAP_SYS_PTRACE).";

ErrorRecord refused(int error, std::int64_t process, int descriptor, const char* op) {
  const std::string whose = "process " + std::to_string(process);
  const std::string what = "descriptor " + std::to_string(descriptor) + " of " + whose;
  if (error == EPERM)
    return fail(ErrorCode::kUnsupported, op, "the kernel does not let this process take " + what).helped(kSendIt);
  if (error == ENOSYS)
    return fail(ErrorCode::kUnsupported, op, "this kernel cannot copy " + what + "; Linux 5.6 can").helped(kSendIt);
  if (error == ESRCH)
    return fail(ErrorCode::kInvalidArgument, op, "there is no " + whose)
        .helped(
            "It has ended, or lives in another PID namespace; then send the descriptor over a Unix socket "
            "(SCM_RIGHTS).");
  if (error == EBADF)
    return fail(ErrorCode::kInvalidArgument, op, "there is no " + what)
        .helped("Its owner keeps the buffer until everybody has imported it.");
  return fail(ErrorCode::kInvalidArgument, op, what + " cannot be copied: " + std::strerror(error));
}

}  // namespace

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) (void)close(descriptor_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Outcome<Descriptor> copyFromProcess(std::int64_t process, int descriptor, const char* op) {
  if (process < 1 || process > INT_MAX)
    return fail(ErrorCode::kInvalidArgument, op, "processId must be the number of a process");
  const Descriptor owner(openProcess(process));
  if (owner.get() < 0) return refused(errno, process, descriptor, op);
  Descriptor copy(takeDescriptor(owner.get(), descriptor));
  if (copy.get() < 0) return refused(errno, process, descriptor, op);
  return copy;
}

}  // namespace nccl_ext
