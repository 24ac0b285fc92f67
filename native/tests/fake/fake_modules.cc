// SPDX-License-Identifier: Apache-2.0
// The driver's modules, part of the fake libcuda.so.1. A cubin is always for another GPU; PTX is text whose lines
// `//kernel <name> <threads> <shared bytes> <offset>:<bytes> ... [stack <bytes>]`, or real ones with `.entry`, name the kernels below, which run on the
// host.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "runtime/shared/guard.hpp"
#include "tests/fake/fake_stream.hpp"
#include "values/shared/value_tile.hpp"

struct CUfunc_st {
  std::string name;
  int maxThreads = 0;
  int sharedBytes = 0;
  int stackBytes = 0;
  int dynamicSharedBytes = 48 << 10;
  std::vector<std::pair<std::size_t, std::size_t>> parameters;  // offset, bytes
};

struct CUmod_st {
  std::vector<std::unique_ptr<CUfunc_st>> functions;
};

namespace {

using namespace nccl_ext;
using Parameters = std::vector<std::uint8_t>;

// PTX of a newer CUDA than this driver's.
constexpr double kNewestPtx = 9.0;
// What the driver adds to its log is cut there.
constexpr const char* kJitError = "ptxas application ptx input, line 3; error : Unknown symbol 'nowhere'\n";

template <class T>
T at(const Parameters& parameters, std::size_t offset) {
  T value;
  std::memcpy(&value, parameters.data() + offset, sizeof value);
  return value;
}

std::uint64_t yieldingClock() {
  std::this_thread::yield();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// store(u64 *address, u64 value)
void store(const Parameters& parameters) {
  *at<std::uint64_t*>(parameters, 0) = at<std::uint64_t>(parameters, 8);
}

// complain(KernelGuard, u64 code): reports `code` about rank 1, expecting 7, seeing 8
void complain(const Parameters& parameters) {
  report(at<KernelGuard>(parameters, 0), static_cast<ErrorCode>(at<std::uint64_t>(parameters, 32)), 1, 7, 8);
}

// await_flag(u64 *flag, u64 value, KernelGuard): waits for rank 1
void awaitFlag(const Parameters& parameters) {
  (void)waitFor(at<KernelGuard>(parameters, 16), *at<std::uint64_t*>(parameters, 0), at<std::uint64_t>(parameters, 8),
                1, yieldingClock);
}

// As in values/values.cu, with one lane and one warp.
void writeValues(const Parameters& parameters) {
  const auto* boxes = at<const ValueBox*>(parameters, 8);
  for (std::uint64_t tile = 0; tile < at<std::uint64_t>(parameters, 24); tile++) {
    const ValueBox& box = boxOfTile(boxes, at<std::uint32_t>(parameters, 16), tile);
    writeTile(at<std::uint8_t*>(parameters, 0), box, tile, {0, 1});
  }
}

void compareValues(const Parameters& parameters) {
  const auto* boxes = at<const ValueBox*>(parameters, 8);
  auto* found = at<ValueDifference*>(parameters, 32);
  for (std::uint64_t tile = 0; tile < at<std::uint64_t>(parameters, 24); tile++) {
    const ValueBox& box = boxOfTile(boxes, at<std::uint32_t>(parameters, 16), tile);
    compareTile(at<const std::uint8_t*>(parameters, 0), box, tile, {0, 1}, *found);
  }
}

void nothing(const Parameters&) {}

const std::map<std::string, void (*)(const Parameters&)> kKernels{
    {"store", store},     {"complain", complain},        {"await_flag", awaitFlag},
    {"nothing", nothing}, {"write_values", writeValues}, {"compare_values", compareValues}};

void tell(unsigned count, const CUjit_option* options, void* const* values, const char* text) {
  char* buffer = nullptr;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffer = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) bytes = reinterpret_cast<std::size_t>(values[i]);
  }
  if (buffer != nullptr) std::snprintf(buffer, bytes, "%s", text);
}

std::unique_ptr<CUfunc_st> parseKernel(std::istringstream line) {
  auto function = std::make_unique<CUfunc_st>();
  line >> function->name >> function->maxThreads >> function->sharedBytes;
  std::size_t offset = 0, bytes = 0;
  for (char colon = 0; line >> offset >> colon >> bytes;) function->parameters.emplace_back(offset, bytes);
  line.clear();
  std::string word;
  if (line >> word && word == "stack") line >> function->stackBytes;
  return function;
}

// `.param .u64 name_param_0,` and so on, up to the closing parenthesis; `line` is that of the name.
std::unique_ptr<CUfunc_st> parseEntry(const std::string& line, std::istringstream& lines) {
  auto function = std::make_unique<CUfunc_st>();
  const std::size_t name = line.find(".entry ") + std::strlen(".entry ");
  function->name = line.substr(name, line.find('(') - name);
  function->maxThreads = 1024;
  std::size_t end = 0;
  for (std::string parameter; std::getline(lines, parameter) && parameter.find(')') == std::string::npos;) {
    const std::size_t width = parameter.find(".param .u");
    if (width == std::string::npos) continue;
    const std::size_t bytes = std::stoul(parameter.substr(width + std::strlen(".param .u"))) / 8;
    const std::size_t offset = (end + bytes - 1) / bytes * bytes;
    function->parameters.emplace_back(offset, bytes);
    end = offset + bytes;
  }
  return function;
}

// A variable stands for a driver older than 12.4.
CUresult ofNewDrivers(CUresult result) {
  return std::getenv("FAKE_CUDA_NO_PARAM_INFO") == nullptr ? result : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

extern "C" {

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
  const char* text = static_cast<const char*>(image);
  if (std::memcmp(text, "\177ELF", 4) == 0) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  const char* version = std::strstr(text, ".version");
  if (version == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  if (std::atof(version + std::strlen(".version")) > kNewestPtx) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  if (std::strstr(text, "nowhere") != nullptr) {
    tell(count, options, values, kJitError);
    return CUDA_ERROR_INVALID_PTX;
  }
  // A variable stands for a driver without conditional graphs.
  if (std::strstr(text, "cudaGraphSetConditional") != nullptr && std::getenv("FAKE_CUDA_NO_CONDITIONS") != nullptr)
    return CUDA_ERROR_INVALID_PTX;
  auto made = std::make_unique<CUmod_st>();
  std::istringstream lines(text);
  const std::string mark = "//kernel ";
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(mark, 0) == 0) made->functions.push_back(parseKernel(std::istringstream(line.substr(mark.size()))));
    if (line.rfind(".visible .entry ", 0) == 0) made->functions.push_back(parseEntry(line, lines));
  }
  *module = made.release();
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  delete module;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  for (const auto& one : module->functions) {
    if (one->name != name) continue;
    *function = one.get();
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  for (unsigned i = 0; i < count; i++) functions[i] = module->functions[i].get();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction) {
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  if (index >= function->parameters.size()) return ofNewDrivers(CUDA_ERROR_INVALID_VALUE);
  *offset = function->parameters[index].first;
  *bytes = function->parameters[index].second;
  return ofNewDrivers(CUDA_SUCCESS);
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = function->maxThreads;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = function->sharedBytes;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = function->stackBytes;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute, int value) {
  function->dynamicSharedBytes = value;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned sharedBytes, CUstream stream, void**, void** extra) {
  if (static_cast<int>(sharedBytes) > function->dynamicSharedBytes) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t bytes = extra == nullptr ? 0 : *static_cast<std::size_t*>(extra[3]);
  const auto* first = extra == nullptr ? nullptr : static_cast<const std::uint8_t*>(extra[1]);
  const std::size_t needed =
      function->parameters.empty() ? 0 : function->parameters.back().first + function->parameters.back().second;
  const auto kernel = kKernels.find(function->name);
  if (bytes < needed || kernel == kKernels.end()) return CUDA_ERROR_INVALID_VALUE;
  const Parameters parameters(first, first + bytes);
  const auto* front = reinterpret_cast<const fake::StreamFront*>(stream);
  return static_cast<CUresult>(front->launch(stream, [run = kernel->second, parameters] { run(parameters); }));
}

}  // extern "C"
