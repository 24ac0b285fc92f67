// SPDX-License-Identifier: Apache-2.0
#include "runtime/module_state.hpp"

#include <algorithm>
#include <array>

#include "runtime/cuda_error.hpp"
#include "runtime/module_image.hpp"
#include "runtime/preload.hpp"

namespace nccl_ext {
namespace {

constexpr const char* kOp = "loadModule";
constexpr std::size_t kLogBytes = 8192;

// Why the driver refuses an image, and what to do.
Failure refusal(CUresult result, int device, const std::string& log) {
  const std::string gpu = "GPU " + std::to_string(device);
  const std::string said = log.empty() ? driverText(result) : driverText(result) + ": " + log;
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return fail(ErrorCode::kOutOfMemory, kOp, gpu + " has no memory for the module: " + said);
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return fail(ErrorCode::kModule, kOp, "the module holds no code for " + gpu + ": " + said)
          .helped("Compile it for this GPU, as in `nvcc -cubin -arch=sm_90a`, or pass PTX.");
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return fail(ErrorCode::kModule, kOp, "this PTX is newer than the driver: " + said)
          .helped("Compile with an older CUDA, or to a cubin; or update the driver.");
    case CUDA_ERROR_INVALID_PTX:
      return fail(ErrorCode::kModule, kOp, "the driver cannot compile this PTX: " + said);
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
      return fail(ErrorCode::kModule, kOp, "the driver has no PTX compiler here: " + said)
          .helped("Give the container libnvidia-ptxjitcompiler.so, or pass a cubin.");
    default:
      return fail(ErrorCode::kModule, kOp, "the driver refuses the module: " + said);
  }
}

Outcome<CUmodule> loadData(int device, const Bytes& image) {
  std::array<char, kLogBytes> log{};
  std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(kLogBytes - 1)};
  CUmodule module = nullptr;
  const CUresult result =
      driver().cuModuleLoadDataEx(&module, image.data(), options.size(), options.data(), values.data());
  if (result == CUDA_SUCCESS) return module;
  std::string text = log.data();
  text.erase(text.find_last_not_of(" \n\r\t") + 1);
  return refusal(result, device, text);
}

// The driver has no count of parameters: it refuses the first index that is too large.
std::optional<std::vector<ParameterPlace>> parametersOf(CUfunction function) {
  if (driver().cuFuncGetParamInfo == nullptr) return std::nullopt;
  std::vector<ParameterPlace> places;
  for (;;) {
    ParameterPlace place;
    const CUresult result = driver().cuFuncGetParamInfo(function, places.size(), &place.offset, &place.bytes);
    if (result == CUDA_ERROR_INVALID_VALUE) return places;
    if (result != CUDA_SUCCESS) return std::nullopt;
    places.push_back(place);
  }
}

// Also lets the kernel have its stack, and all the dynamic shared memory that the GPU allows, so that launches need no call for it.
Outcome<KernelFacts> factsOf(int device, CUfunction function, const std::string& name) {
  KernelFacts facts;
  int fixedShared = 0, mostShared = 0, stack = 0;
  CUresult result = driver().cuFuncGetAttribute(&facts.maxThreads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
  if (result == CUDA_SUCCESS)
    result = driver().cuFuncGetAttribute(&fixedShared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
  if (result == CUDA_SUCCESS)
    result = driver().cuFuncGetAttribute(&stack, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
  if (result == CUDA_SUCCESS) result = static_cast<CUresult>(reserveStack(static_cast<std::size_t>(stack)));
  if (result == CUDA_SUCCESS) {
    result =
        static_cast<CUresult>(cudaDeviceGetAttribute(&mostShared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  }
  facts.maxDynamicSharedBytes = std::max(0, mostShared - fixedShared);
  if (result == CUDA_SUCCESS) {
    result = driver().cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         facts.maxDynamicSharedBytes);
  }
  if (result != CUDA_SUCCESS)
    return fail(ErrorCode::kModule, kOp, "the driver does not describe the kernel " + name + ": " + driverText(result));
  facts.parameters = parametersOf(function);
  return facts;
}

Outcome<std::shared_ptr<KernelState>> addKernel(ModuleState& module, int device, const std::string& name,
                                                CUfunction function) {
  Outcome<KernelFacts> facts = factsOf(device, function, name);
  if (!facts) return facts.error();
  auto kernel = std::make_shared<KernelState>();
  kernel->module = &module;
  kernel->name = name;
  kernel->function = function;
  kernel->facts = std::move(facts.value());
  module.kernels.emplace(name, kernel);
  return kernel;
}

Status addAllKernels(ModuleState& module, int device) {
  unsigned count = 0;
  CUresult result = driver().cuModuleGetFunctionCount(&count, module.loaded.get());
  std::vector<CUfunction> functions(count);
  if (result == CUDA_SUCCESS && count > 0)
    result = driver().cuModuleEnumerateFunctions(functions.data(), count, module.loaded.get());
  for (const CUfunction function : functions) {
    const char* name = nullptr;
    // CUDA loads kernels when they are first used, unless CUDA_MODULE_LOADING=EAGER.
    if (result == CUDA_SUCCESS) result = driver().cuFuncLoad(function);
    if (result == CUDA_SUCCESS) result = driver().cuFuncGetName(&name, function);
    if (result != CUDA_SUCCESS) break;
    if (const auto added = addKernel(module, device, name, function); !added) return added.error();
  }
  if (result == CUDA_SUCCESS) return ok();
  return fail(ErrorCode::kModule, kOp, "the driver does not load the module's kernels: " + driverText(result));
}

}  // namespace

LoadedModule::~LoadedModule() {
  if (module_ == nullptr) return;
  const DriverScope scope(device_);
  (void)driver().cuModuleUnload(module_);
}

LoadedModule& LoadedModule::operator=(LoadedModule&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(module_, other.module_);
  return *this;
}

Outcome<std::shared_ptr<ModuleState>> loadImage(int device, Bytes image) {
  if (const Status prepared = prepareImage(image); !prepared) return prepared.error();
  const DriverScope scope(device);
  Outcome<CUmodule> loaded = loadData(device, image);
  if (!loaded) return loaded.error();
  auto module = std::make_shared<ModuleState>();
  module->loaded = LoadedModule(device, loaded.value());
  if (driver().canEnumerate()) {
    if (const Status added = addAllKernels(*module, device); !added) return added.error();
  }
  return module;
}

Outcome<std::shared_ptr<KernelState>> findKernel(ModuleState& module, int device, const std::string& name) {
  const auto known = module.kernels.find(name);
  if (known != module.kernels.end()) return known->second;
  if (driver().canEnumerate()) return std::shared_ptr<KernelState>();
  const DriverScope scope(device);
  CUfunction function = nullptr;
  const CUresult result = driver().cuModuleGetFunction(&function, module.loaded.get(), name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND) return std::shared_ptr<KernelState>();
  if (result != CUDA_SUCCESS) return fail(ErrorCode::kModule, "kernelOf", driverText(result));
  return addKernel(module, device, name, function);
}

}  // namespace nccl_ext
