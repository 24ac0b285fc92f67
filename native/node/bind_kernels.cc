// SPDX-License-Identifier: Apache-2.0
// Users' kernels and what they address: named and typed as in core/src/contract/runtime.ts.
#include "node/bind_runtime.hpp"
#include "node/binding.hpp"

namespace nccl_ext {
namespace {

// Numbers of an array; -1, which the runtime refuses, for anything else in it, and none for anything else.
std::vector<std::int64_t> numbersOf(const Napi::Value& value) {
  std::vector<std::int64_t> numbers;
  if (!value.IsArray()) return numbers;
  const auto list = value.As<Napi::Array>();
  for (std::uint32_t i = 0; i < list.Length(); i++) numbers.push_back(integerOf(list.Get(i)));
  return numbers;
}

std::vector<std::int64_t> offsetsOf(const Napi::Value& value) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_int32_array)
    return numbersOf(value);
  const auto array = value.As<Napi::Int32Array>();
  return std::vector<std::int64_t>(array.Data(), array.Data() + array.ElementLength());
}

Dimensions dimensionsOf(const Napi::Value& value) {
  const std::vector<std::int64_t> numbers = numbersOf(value);
  Dimensions dimensions{-1, -1, -1};
  if (numbers.size() == dimensions.size()) std::copy(numbers.begin(), numbers.end(), dimensions.begin());
  return dimensions;
}

KernelLaunch launchOf(const Napi::Value& value) {
  KernelLaunch launch;
  if (!value.IsObject()) return launch;
  const auto object = value.As<Napi::Object>();
  launch.grid = dimensionsOf(object.Get("grid"));
  launch.block = dimensionsOf(object.Get("block"));
  launch.sharedBytes = integerOf(object.Get("sharedBytes"));
  launch.parameters = bytesOf(object.Get("parameters"));
  launch.offsets = offsetsOf(object.Get("offsets"));
  launch.guardOffset = integerOf(object.Get("guardOffset"));
  launch.buffers = numbersOf(object.Get("buffers"));
  return launch;
}

Napi::Value windowPeers(Info info) {
  Runtime* runtime = sessionOf(info).runtime();
  const Outcome<WindowPeers> peers =
      runtime == nullptr ? Outcome<WindowPeers>(gone()) : runtime->windowPeers(integerOf(info[0]));
  if (!peers) return failed(info.Env(), peers.error());
  const std::vector<std::uint64_t>& addresses = peers.value().addresses;
  Napi::Array list = Napi::Array::New(info.Env(), addresses.size());
  for (std::uint32_t rank = 0; rank < addresses.size(); rank++)
    list.Set(rank, Napi::BigInt::New(info.Env(), addresses[rank]));
  Napi::Object out = Napi::Object::New(info.Env());
  out.Set("table", Napi::BigInt::New(info.Env(), peers.value().table));
  out.Set("addresses", list);
  return succeeded(info.Env(), out);
}

Napi::Value loadModule(Info info) {
  return withPromise<Outcome<Handle>>(
      info, [&](Runtime& runtime, auto done) { runtime.loadModule(integerOf(info[0]), bytesOf(info[1]), done); });
}

Napi::Value unloadModule(Info info) {
  return withStatus(info, [&](Runtime& runtime) { return runtime.unloadModule(integerOf(info[0])); });
}

Napi::Value kernelOf(Info info) {
  return withOutcome<Handle>(info,
                             [&](Runtime& runtime) { return runtime.kernelOf(integerOf(info[0]), textOf(info[1])); });
}

Napi::Value launchKernel(Info info) {
  return withStatus(info, [&](Runtime& runtime) {
    return runtime.launchKernel(integerOf(info[0]), integerOf(info[1]), launchOf(info[2]));
  });
}

constexpr Binding kBindings[] = {
    {"windowPeers", windowPeers},    // (window) => Outcome<WindowPeers>
    {"loadModule", loadModule},      // (rank, image) => Promise<Outcome<ModuleHandle>>
    {"unloadModule", unloadModule},  // (module) => Status
    {"kernelOf", kernelOf},          // (module, name) => Outcome<KernelHandle>
    {"launchKernel", launchKernel},  // (stream, kernel, launch) => Status
};

}  // namespace

void bindKernels(Napi::Object runtime, Session& session) {
  bind(runtime, kBindings, session);
}

}  // namespace nccl_ext
