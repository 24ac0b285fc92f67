// SPDX-License-Identifier: Apache-2.0
// A kernel that does not let a process take another's descriptors is told from a wrong number, with the way around it.
#include "runtime/descriptor.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace nccl_ext {
namespace {

constexpr uid_t kNobody = 65534;

TEST(Descriptor, OfAProcessThatMayNotBeTracedIsRefusedWithAWayAround) {
  int pipeEnds[2];
  ASSERT_EQ(pipe(pipeEnds), 0);
  // Nobody but root may look into this process from here on, and the child is not root.
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(kNobody) != 0) _exit(1);
    const Outcome<Descriptor> copy = copyFromProcess(parent, pipeEnds[0], "importMemory");
    if (copy) _exit(2);
    if (copy.error().code != ErrorCode::kUnsupported) _exit(3);
    _exit(copy.error().help.find("SCM_RIGHTS") == std::string::npos ? 4 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  (void)prctl(PR_SET_DUMPABLE, 1);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  close(pipeEnds[0]);
  close(pipeEnds[1]);
}

}  // namespace
}  // namespace nccl_ext
