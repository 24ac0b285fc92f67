// SPDX-License-Identifier: Apache-2.0
// Each function is named and typed as in core/src/contract/runtime.ts; its signature stands in the table at the end.
#include "node/bind_runtime.hpp"

#include "node/binding.hpp"

namespace nccl_ext {
namespace {

Napi::Value lastError(Info info) {
  return toJs(info.Env(), sessionOf(info).lastError);
}

Napi::Value createLocalRanks(Info info) {
  return withPromise<Outcome<std::vector<Handle>>>(
      info, [&](Runtime& runtime, auto done) { runtime.createLocalRanks(localRanksConfigOf(info[0]), done); });
}

Napi::Value joinRank(Info info) {
  return withPromise<Outcome<Handle>>(
      info, [&](Runtime& runtime, auto done) { runtime.joinRank(joinConfigOf(info[0]), done); });
}

Napi::Value abortRank(Info info) {
  return withStatus(info, [&](Runtime& runtime) { return runtime.abortRank(integerOf(info[0]), textOf(info[1])); });
}

Napi::Value disposeRank(Info info) {
  return withPromise<Status>(info, [&](Runtime& runtime, auto done) { runtime.disposeRank(integerOf(info[0]), done); });
}

Napi::Value poisonOf(Info info) {
  Runtime* runtime = sessionOf(info).runtime();
  const std::optional<ErrorRecord> record = runtime == nullptr ? gone() : runtime->poisonOf(integerOf(info[0]));
  return record ? toJs(info.Env(), *record) : info.Env().Undefined();
}

Napi::Value deviceOf(Info info) {
  Runtime* runtime = sessionOf(info).runtime();
  const Outcome<DeviceInfo> device =
      runtime == nullptr ? Outcome<DeviceInfo>(gone()) : runtime->deviceOf(integerOf(info[0]));
  Napi::Object out = Napi::Object::New(info.Env());
  out.Set("index", device ? device.value().index : -1);
  out.Set("name", device ? device.value().name : device.error().detail);
  out.Set("uuid", device ? device.value().uuid : "");
  out.Set("multiprocessors", device ? device.value().multiprocessors : 0);
  out.Set("ranks", device ? device.value().ranks : 0);
  out.Set("smBudget", device ? device.value().smBudget : 0);
  return out;
}

// Nothing is known about a rank that is gone.
Napi::Value factsOf(Info info) {
  Runtime* runtime = sessionOf(info).runtime();
  const Outcome<Facts> facts = runtime == nullptr ? Outcome<Facts>(gone()) : runtime->factsOf(integerOf(info[0]));
  return toJs(info.Env(), facts ? facts.value() : Facts());
}

Napi::Value splitRank(Info info) {
  return withPromise<Outcome<std::optional<SplitRank>>>(info, [&](Runtime& runtime, auto done) {
    runtime.splitRank(integerOf(info[0]), anyIntegerOf(info[1]), anyIntegerOf(info[2]), done);
  });
}

Napi::Value exchange(Info info) {
  return withPromise<Outcome<std::vector<Bytes>>>(info, [&](Runtime& runtime, auto done) {
    runtime.exchange(integerOf(info[0]), textOf(info[1]), bytesOf(info[2]), done);
  });
}

Napi::Value allocate(Info info) {
  return withOutcome<Handle>(info, [&](Runtime& runtime) {
    return runtime.allocate(integerOf(info[0]), integerOf(info[1]),
                            textOf(info[2]) == "symmetric" ? MemoryKind::kSymmetric : MemoryKind::kPlain);
  });
}

Napi::Value freeBuffer(Info info) {
  return withStatus(info, [&](Runtime& runtime) { return runtime.freeBuffer(integerOf(info[0])); });
}

// 0 for a handle that is no buffer, as on the embedded backend.
Napi::Value bufferAddress(Info info) {
  Runtime* runtime = sessionOf(info).runtime();
  const Outcome<std::uint64_t> address =
      runtime == nullptr ? Outcome<std::uint64_t>(gone()) : runtime->bufferAddress(integerOf(info[0]));
  return Napi::BigInt::New(info.Env(), address ? address.value() : std::uint64_t{0});
}

Napi::Value mapBuffer(Info info) {
  return failed(info.Env(), fail(ErrorCode::kUnsupported, "mapBuffer", "the host cannot see device memory")
                                .helped("Use stream.download and stream.upload."));
}

Napi::Value memoryUsage(Info info) {
  Runtime* runtime = sessionOf(info).runtime();
  const MemoryUsage usage = runtime == nullptr ? MemoryUsage() : runtime->memoryUsage();
  Napi::Object out = Napi::Object::New(info.Env());
  out.Set("allocatedBytes", static_cast<double>(usage.allocatedBytes));
  out.Set("reservedBytes", static_cast<double>(usage.reservedBytes));
  return out;
}

Napi::Value availableMemoryOf(Info info) {
  return withOutcome<std::int64_t>(info,
                                   [&](Runtime& runtime) { return runtime.availableMemoryOf(integerOf(info[0])); });
}

Napi::Value registerWindow(Info info) {
  return withPromise<Outcome<Handle>>(
      info, [&](Runtime& runtime, auto done) { runtime.registerWindow(integerOf(info[0]), integerOf(info[1]), done); });
}

Napi::Value freeWindow(Info info) {
  return withStatus(info, [&](Runtime& runtime) { return runtime.freeWindow(integerOf(info[0])); });
}

Napi::Value createStream(Info info) {
  return withOutcome<Handle>(info, [&](Runtime& runtime) { return runtime.createStream(integerOf(info[0])); });
}

Napi::Value freeStream(Info info) {
  return withStatus(info, [&](Runtime& runtime) { return runtime.freeStream(integerOf(info[0])); });
}

Napi::Value queued(Info info) {
  Runtime* runtime = sessionOf(info).runtime();
  return Napi::Number::New(info.Env(), runtime == nullptr ? 0 : runtime->queued(integerOf(info[0])));
}

Napi::Value synchronize(Info info) {
  return withPromise<Status>(info, [&](Runtime& runtime, auto done) { runtime.synchronize(integerOf(info[0]), done); });
}

Napi::Value createEvent(Info info) {
  return withOutcome<Handle>(info, [&](Runtime& runtime) { return runtime.createEvent(integerOf(info[0])); });
}

Napi::Value freeEvent(Info info) {
  return withStatus(info, [&](Runtime& runtime) { return runtime.freeEvent(integerOf(info[0])); });
}

Napi::Value recordEvent(Info info) {
  return withStatus(info,
                    [&](Runtime& runtime) { return runtime.recordEvent(integerOf(info[0]), integerOf(info[1])); });
}

Napi::Value waitEvent(Info info) {
  return withStatus(info, [&](Runtime& runtime) { return runtime.waitEvent(integerOf(info[0]), integerOf(info[1])); });
}

Napi::Value queryEvent(Info info) {
  return withOutcome<bool>(info, [&](Runtime& runtime) { return runtime.queryEvent(integerOf(info[0])); });
}

Napi::Value synchronizeEvent(Info info) {
  return withPromise<Status>(info,
                             [&](Runtime& runtime, auto done) { runtime.synchronizeEvent(integerOf(info[0]), done); });
}

Napi::Value elapsedMs(Info info) {
  return withOutcome<double>(
      info, [&](Runtime& runtime) { return runtime.elapsedMs(integerOf(info[0]), integerOf(info[1])); });
}

Napi::Value beginCapture(Info info) {
  return withStatus(info, [&](Runtime& runtime) { return runtime.beginCapture(integerOf(info[0])); });
}

Napi::Value endCapture(Info info) {
  return withOutcome<Handle>(info, [&](Runtime& runtime) { return runtime.endCapture(integerOf(info[0])); });
}

Napi::Value launchGraph(Info info) {
  return withStatus(info,
                    [&](Runtime& runtime) { return runtime.launchGraph(integerOf(info[0]), integerOf(info[1])); });
}

Napi::Value freeGraph(Info info) {
  return withStatus(info, [&](Runtime& runtime) { return runtime.freeGraph(integerOf(info[0])); });
}

Napi::Value enqueueCopy(Info info) {
  return withStatus(info, [&](Runtime& runtime) {
    return runtime.enqueueCopy(integerOf(info[0]), integerOf(info[1]), integerOf(info[2]), integerOf(info[3]),
                               integerOf(info[4]), integerOf(info[5]));
  });
}

Napi::Value enqueueFill(Info info) {
  return withStatus(info, [&](Runtime& runtime) {
    return runtime.enqueueFill(integerOf(info[0]), integerOf(info[1]), integerOf(info[2]), integerOf(info[3]),
                               smallIntegerOf(info[4]));
  });
}

Napi::Value enqueueUpload(Info info) {
  return withStatus(info, [&](Runtime& runtime) {
    return runtime.enqueueUpload(integerOf(info[0]), integerOf(info[1]), integerOf(info[2]), spanOf(info[3]));
  });
}

Napi::Value enqueueDownload(Info info) {
  return withStatus(info, [&](Runtime& runtime) {
    return runtime.enqueueDownload(integerOf(info[0]), spanOf(info[1]), integerOf(info[2]), integerOf(info[3]));
  });
}

Napi::Value enqueueHostCall(Info info) {
  return withStatus(info, [&](Runtime& runtime) { return runtime.enqueueHostCall(integerOf(info[0])); });
}

Napi::Value enqueueBarrier(Info info) {
  return withStatus(info, [&](Runtime& runtime) { return runtime.enqueueBarrier(integerOf(info[0])); });
}

constexpr Binding kBindings[] = {
    {"lastError", lastError},                  // () => ErrorRecord
    {"createLocalRanks", createLocalRanks},    // (config) => Promise<Outcome<RankHandle[]>>
    {"joinRank", joinRank},                    // (config) => Promise<Outcome<RankHandle>>
    {"abortRank", abortRank},                  // (rank, reason) => Status
    {"disposeRank", disposeRank},              // (rank) => Promise<Outcome<void>>
    {"poisonOf", poisonOf},                    // (rank) => ErrorRecord | undefined
    {"deviceOf", deviceOf},                    // (rank) => DeviceInfo
    {"factsOf", factsOf},                      // (rank) => Record<string, string>
    {"splitRank", splitRank},                  // (rank, color, key) => Promise<Outcome<SplitRank | undefined>>
    {"exchange", exchange},                    // (rank, topic, payload) => Promise<Outcome<Uint8Array[]>>
    {"allocate", allocate},                    // (rank, bytes, kind) => Outcome<BufferHandle>
    {"freeBuffer", freeBuffer},                // (buffer) => Status
    {"bufferAddress", bufferAddress},          // (buffer) => bigint
    {"mapBuffer", mapBuffer},                  // (buffer) => Outcome<HostView>
    {"memoryUsage", memoryUsage},              // () => MemoryUsage
    {"availableMemoryOf", availableMemoryOf},  // (rank) => Outcome<number>
    {"registerWindow", registerWindow},        // (rank, buffer) => Promise<Outcome<WindowHandle>>
    {"freeWindow", freeWindow},                // (window) => Status
    {"createStream", createStream},            // (rank) => Outcome<StreamHandle>
    {"freeStream", freeStream},                // (stream) => Status
    {"queued", queued},                        // (stream) => number
    {"synchronize", synchronize},              // (stream) => Promise<Outcome<void>>
    {"createEvent", createEvent},              // (rank) => Outcome<EventHandle>
    {"freeEvent", freeEvent},                  // (event) => Status
    {"recordEvent", recordEvent},              // (event, stream) => Status
    {"waitEvent", waitEvent},                  // (stream, event) => Status
    {"queryEvent", queryEvent},                // (event) => Outcome<boolean>
    {"synchronizeEvent", synchronizeEvent},    // (event) => Promise<Outcome<void>>
    {"elapsedMs", elapsedMs},                  // (start, end) => Outcome<number>
    {"beginCapture", beginCapture},            // (stream) => Status
    {"endCapture", endCapture},                // (stream) => Outcome<GraphHandle>
    {"launchGraph", launchGraph},              // (graph, stream) => Status
    {"freeGraph", freeGraph},                  // (graph) => Status
    {"enqueueCopy", enqueueCopy},              // (stream, to, toOffset, from, fromOffset, bytes) => Status
    {"enqueueFill", enqueueFill},              // (stream, buffer, byteOffset, bytes, value) => Status
    {"enqueueUpload", enqueueUpload},          // (stream, buffer, byteOffset, host) => Status
    {"enqueueDownload", enqueueDownload},      // (stream, host, buffer, byteOffset) => Status
    {"enqueueBarrier", enqueueBarrier},        // (stream) => Status
    {"enqueueHostCall", enqueueHostCall},      // (stream, call) => Status
};

}  // namespace

Napi::Object bindRuntime(Napi::Env env, Session& session) {
  Napi::Object runtime = Napi::Object::New(env);
  bind(runtime, kBindings, session);
  bindKernels(runtime, session);
  bindForeign(runtime, session);
  return runtime;
}

}  // namespace nccl_ext
