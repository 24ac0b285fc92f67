// SPDX-License-Identifier: Apache-2.0
#include "tests/fake/fake_nccl_processes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/fake/fake_driver.hpp"

namespace nccl_ext::fake {
namespace {

std::string pathOf(const std::string& world, const std::string& what, int rank) {
  return std::string(std::getenv("FAKE_NCCL_FOLDER")) + "/" + world + "-" + what + "-" + std::to_string(rank);
}

}  // namespace

bool spread() {
  return std::getenv("FAKE_NCCL_FOLDER") != nullptr;
}

// Readers must not see half a line.
void tell(const std::string& world, const std::string& what, int rank, const std::string& line) {
  const std::string path = pathOf(world, what, rank), draft = path + ".draft";
  std::ofstream(draft) << line << '\n';
  std::rename(draft.c_str(), path.c_str());
}

std::optional<std::string> told(const std::string& world, const std::string& what, int rank) {
  std::ifstream file(pathOf(world, what, rank));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::string placeOf(void* address, std::size_t bytes) {
  std::ostringstream line;
  line << getpid() << ' ' << driver().descriptorOf(address) << ' ' << bytes;
  return line.str();
}

void* mapPlace(const std::string& line) {
  std::istringstream place(line);
  int process = 0, descriptor = -1;
  std::size_t bytes = 0;
  place >> process >> descriptor >> bytes;
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return address == MAP_FAILED ? nullptr : address;
}

}  // namespace nccl_ext::fake
