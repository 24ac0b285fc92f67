// SPDX-License-Identifier: Apache-2.0
// Modules of users' kernels, and what the driver says about each kernel.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/driver_api.hpp"
#include "runtime/handles.hpp"
#include "runtime/meeting.hpp"

namespace nccl_ext {

// Unloads with its owner, which may wait for kernels: not on JavaScript's thread while a peer may spin.
class LoadedModule {
 public:
  LoadedModule() = default;
  LoadedModule(int device, CUmodule module) : device_(device), module_(module) {}
  ~LoadedModule();
  LoadedModule(LoadedModule&& other) noexcept { *this = std::move(other); }
  LoadedModule& operator=(LoadedModule&& other) noexcept;

  CUmodule get() const { return module_; }

 private:
  int device_ = 0;
  CUmodule module_ = nullptr;
};

// Where the driver expects a parameter.
struct ParameterPlace {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct KernelFacts {
  std::optional<std::vector<ParameterPlace>> parameters;  // where the driver tells
  int maxThreads = 0;                                     // of a CTA
  int maxDynamicSharedBytes = 0;                          // which the kernel has been allowed
};

struct KernelState {
  Handle handle = 0;  // 0 until somebody asked for the kernel
  ModuleState* module = nullptr;
  std::string name;
  CUfunction function = nullptr;
  KernelFacts facts;
};

struct ModuleState {
  Handle handle = 0;
  std::shared_ptr<RankState> owner;
  LoadedModule loaded;
  // By name. Complete when the driver can enumerate; otherwise those that were asked for.
  std::map<std::string, std::shared_ptr<KernelState>> kernels;
  // Held by queued launches and by graphs as well: the module is busy while somebody else has it.
  std::shared_ptr<int> use = std::make_shared<int>(0);

  bool isBusy() const { return use.use_count() > 1; }
};

// Loads `image` with all its kernels, so that no later call loads code while a peer spins. For the rank's worker; the
// module has no owner and no handle yet. Errors as prepareImage's, and ERR_MODULE with the driver's log.
Outcome<std::shared_ptr<ModuleState>> loadImage(int device, Bytes image);

// The kernel of this name; null when there is none.
Outcome<std::shared_ptr<KernelState>> findKernel(ModuleState& module, int device, const std::string& name);

}  // namespace nccl_ext
