// SPDX-License-Identifier: Apache-2.0
// The addon's exports: createBackend(version, options) and, for doctor and the build's checks, probe(options). It loads on a machine
// without a driver and without NCCL; both are looked for when the first rank is made.
#include <cuda_runtime_api.h>

#include "nccl/loader.hpp"
#include "node/bind_runtime.hpp"
#include "runtime/driver.hpp"
#include "runtime/probe_devices.hpp"

namespace nccl_ext {
namespace {

static_assert(CUDART_VERSION / 1000 == NCCL_EXT_CUDA_MAJOR, "the toolkit's CUDA is not the package's");

std::string cudaText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Napi::Value details(const Napi::CallbackInfo& info) {
  auto& session = *static_cast<Session*>(info.Data());
  Napi::Object out = Napi::Object::New(info.Env());
  out.Set("cuda", cudaText(CUDART_VERSION));
  out.Set("ncclNeeded", ncclVersionText(kOldestNccl));
  if (session.runtime() == nullptr) return out;
  for (const auto& [name, value] : session.runtime()->details()) out.Set(name, value);
  return out;
}

Napi::Value dispose(const Napi::CallbackInfo& info) {
  const Napi::Promise::Deferred deferred(info.Env());
  static_cast<Session*>(info.Data())->dispose();
  deferred.Resolve(info.Env().Undefined());
  return deferred.Promise();
}

// (version: string, options?: LoadOptions) => Backend
Napi::Value createBackend(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Session* session = Session::create(env, {NCCL_EXT_CUDA_MAJOR, textOf(info[0]), ncclChoiceOf(info[1])});
  Napi::Object about = Napi::Object::New(env);
  about.Set("name", "cuda" + std::to_string(NCCL_EXT_CUDA_MAJOR));
  about.Set("version", textOf(info[0]));
  about.Set("contractVersion", kContractVersion);
  about.DefineProperty(Napi::PropertyDescriptor::Accessor<details>("details", napi_enumerable, session));
  Napi::Object backend = Napi::Object::New(env);
  backend.Set("info", about);
  backend.Set("runtime", bindRuntime(env, *session));
  backend.Set("m2n", bindM2n(env, *session));
  backend.Set("dispose", Napi::Function::New(env, dispose, "dispose", session));
  return backend;
}

Napi::Object driverToJs(Napi::Env env, const Outcome<DriverFacts>& driver) {
  if (!driver) return failed(env, driver.error());
  Napi::Object facts = Napi::Object::New(env);
  facts.Set("cuda", cudaText(driver.value().cudaVersion));
  facts.Set("devices", driver.value().devices);
  return succeeded(env, facts);
}

Napi::Array devicesToJs(Napi::Env env, const std::vector<ProbedDevice>& devices) {
  Napi::Array list = Napi::Array::New(env, devices.size());
  for (std::uint32_t i = 0; i < devices.size(); i++) {
    const ProbedDevice& device = devices[i];
    Napi::Object out = Napi::Object::New(env);
    out.Set("index", device.index);
    out.Set("name", device.name);
    out.Set("uuid", device.uuid);
    out.Set("computeCapability", device.computeCapability);
    out.Set("multiprocessors", device.multiprocessors);
    out.Set("memoryBytes", static_cast<double>(device.memoryBytes));
    Napi::Array peers = Napi::Array::New(env, device.peers.size());
    for (std::uint32_t j = 0; j < device.peers.size(); j++) peers.Set(j, device.peers[j]);
    out.Set("peers", peers);
    list.Set(i, out);
  }
  return list;
}

Napi::Object ncclToJs(Napi::Env env, const Outcome<NcclApi>& nccl) {
  if (!nccl) return failed(env, nccl.error());
  Napi::Object facts = Napi::Object::New(env);
  facts.Set("path", nccl.value().path);
  facts.Set("version", ncclVersionText(nccl.value().version));
  facts.Set("cudaMajor", nccl.value().cudaMajor);
  return succeeded(env, facts);
}

// (options?: LoadOptions) => Probe of contract/cuda-package.ts; makes no context and no rank.
Napi::Value probe(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Outcome<DriverFacts> driver = probeDriver(NCCL_EXT_CUDA_MAJOR);
  const int driverMajor = driver ? driver.value().cudaVersion / 1000 : 0;
  Napi::Object out = Napi::Object::New(env);
  out.Set("driver", driverToJs(env, driver));
  out.Set("devices", devicesToJs(env, driver ? probeDevices(driver.value().devices) : std::vector<ProbedDevice>()));
  out.Set("nccl",
          ncclToJs(env, loadNccl(ncclCandidates(searchFor(NCCL_EXT_CUDA_MAJOR, ncclChoiceOf(info[0]))), driverMajor)));
  return out;
}

Napi::Object start(Napi::Env env, Napi::Object exports) {
  exports.Set("createBackend", Napi::Function::New(env, createBackend, "createBackend"));
  exports.Set("probe", Napi::Function::New(env, probe, "probe"));
  return exports;
}

}  // namespace
}  // namespace nccl_ext

static Napi::Object startAddon(Napi::Env env, Napi::Object exports) {
  return nccl_ext::start(env, exports);
}

NODE_API_MODULE(nccl_ext, startAddon)
