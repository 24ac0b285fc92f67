// SPDX-License-Identifier: Apache-2.0
// Ranks of the fake NCCL in several processes: what each has done is a file in the folder FAKE_NCCL_FOLDER, which the others read.
#pragma once

#include <optional>
#include <string>

// Of each fake its own (fake_nccl_world.hpp).
#pragma GCC visibility push(hidden)
namespace nccl_ext::fake {

// Whether ranks may be those of other processes.
bool spread();

// Tells the others that `rank` has done `what` in a world, in one line.
void tell(const std::string& world, const std::string& what, int rank, const std::string& line);

// What `rank` told, if it has.
std::optional<std::string> told(const std::string& world, const std::string& what, int rank);

// A line by which other processes find virtual memory, and where this process sees it then.
std::string placeOf(void* address, std::size_t bytes);
void* mapPlace(const std::string& line);

}  // namespace nccl_ext::fake
#pragma GCC visibility pop
