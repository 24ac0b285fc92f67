// SPDX-License-Identifier: Apache-2.0
// The fake NCCL's memory and windows.
#include "tests/fake/fake_driver.hpp"
#include "tests/fake/fake_nccl_processes.hpp"
#include "tests/fake/fake_nccl_world.hpp"

using nccl_ext::fake::numbered;
using nccl_ext::fake::tell;
using nccl_ext::fake::worldsMutex;

extern "C" {

ncclResult_t ncclMemAlloc(void** address, std::size_t bytes) {
  if (bytes > (std::size_t{1} << 40)) return ncclUnhandledCudaError;
  const nccl_ext::fake::Driver& driver = nccl_ext::fake::driver();
  *address = driver.allocate(nccl_ext::fake::Memory::kVirtual, driver.current(), bytes, 1);
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void* address) {
  nccl_ext::fake::driver().release(address);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* address, std::size_t bytes, ncclWindow_t* window, int) {
  if (nccl_ext::fake::fails("register", comm->rank)) return ncclSystemError;
  const std::lock_guard<std::mutex> lock(worldsMutex);
  const auto number = static_cast<std::size_t>(comm->windows++);
  if (comm->world->windows.size() <= number) comm->world->windows.resize(number + 1);
  comm->world->windows[number][comm->rank] = address;
  if (nccl_ext::fake::spread())
    tell(*comm->world, numbered("window", number), comm->rank, nccl_ext::fake::placeOf(address, bytes));
  const auto made = new ncclWindow_vidmem{comm->world, number};
  comm->open.insert(made);
  comm->promised.emplace_back(window, made);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  comm->open.erase(window);
  delete window;
  return ncclSuccess;
}

#ifndef FAKE_NCCL_INCOMPLETE
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, std::size_t offset, int peer, void** address) {
  const std::lock_guard<std::mutex> lock(worldsMutex);
  *address = static_cast<char*>(window->world->windows[window->number][peer]) + offset;
  return ncclSuccess;
}
#endif

}  // extern "C"
