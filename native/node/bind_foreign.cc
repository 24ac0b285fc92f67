// SPDX-License-Identifier: Apache-2.0
// Memory and streams of others. Addresses are bigints, IPC handles Uint8Arrays.
#include "node/bind_runtime.hpp"
#include "node/binding.hpp"

namespace nccl_ext {
namespace {

// -1 for what is no integer; `absent` for a field that is not there.
std::int64_t fieldOf(const Napi::Object& object, const char* name, std::int64_t absent = -1) {
  const Napi::Value value = object.Get(name);
  return value.IsUndefined() ? absent : integerOf(value);
}

MemoryShare shareOf(const Napi::Value& value) {
  MemoryShare share;
  if (!value.IsObject()) return share;
  const auto object = value.As<Napi::Object>();
  const std::string kind = textOf(object.Get("kind"));
  if (kind == "ipc") share.kind = ShareKind::kIpc;
  if (kind == "fd") share.kind = ShareKind::kDescriptor;
  share.byteOffset = fieldOf(object, "byteOffset");
  share.bytes = fieldOf(object, "bytes");
  share.handle = bytesOf(object.Get("handle"));
  share.descriptor = smallIntegerOf(object.Get("fd"));
  share.processId = fieldOf(object, "processId", 0);
  share.allocationBytes = fieldOf(object, "allocationBytes");
  return share;
}

Napi::Value toJs(Napi::Env env, const MemoryShare& share) {
  const auto number = [env](std::int64_t value) { return Napi::Number::New(env, static_cast<double>(value)); };
  Napi::Object out = Napi::Object::New(env);
  if (share.kind == ShareKind::kIpc) {
    out.Set("kind", "ipc");
    out.Set("handle", nccl_ext::toJs(env, share.handle));
  } else {
    out.Set("kind", "fd");
    out.Set("fd", share.descriptor);
    out.Set("processId", number(share.processId));
    out.Set("allocationBytes", number(share.allocationBytes));
  }
  out.Set("byteOffset", number(share.byteOffset));
  out.Set("bytes", number(share.bytes));
  return out;
}

Napi::Value wrapMemory(Info info) {
  return withOutcome<Handle>(info, [&](Runtime& runtime) {
    return runtime.wrapMemory(integerOf(info[0]), addressOf(info[1]), integerOf(info[2]));
  });
}

Napi::Value exportMemory(Info info) {
  Runtime* runtime = sessionOf(info).runtime();
  const Outcome<MemoryShare> share =
      runtime == nullptr ? Outcome<MemoryShare>(gone()) : runtime->exportMemory(integerOf(info[0]));
  if (!share) return failed(info.Env(), share.error());
  return succeeded(info.Env(), toJs(info.Env(), share.value()));
}

Napi::Value importMemory(Info info) {
  return withOutcome<Handle>(
      info, [&](Runtime& runtime) { return runtime.importMemory(integerOf(info[0]), shareOf(info[1])); });
}

Napi::Value wrapStream(Info info) {
  return withOutcome<Handle>(
      info, [&](Runtime& runtime) { return runtime.wrapStream(integerOf(info[0]), addressOf(info[1])); });
}

// 0 for a handle that is no stream, as on the embedded backend.
Napi::Value streamAddress(Info info) {
  Runtime* runtime = sessionOf(info).runtime();
  const Outcome<std::uint64_t> address =
      runtime == nullptr ? Outcome<std::uint64_t>(gone()) : runtime->streamAddress(integerOf(info[0]));
  return Napi::BigInt::New(info.Env(), address ? address.value() : std::uint64_t{0});
}

constexpr Binding kBindings[] = {
    {"wrapMemory", wrapMemory},        // (rank, address, bytes) => Outcome<BufferHandle>
    {"exportMemory", exportMemory},    // (buffer) => Outcome<MemoryShare>
    {"importMemory", importMemory},    // (rank, share) => Outcome<BufferHandle>
    {"wrapStream", wrapStream},        // (rank, address) => Outcome<StreamHandle>
    {"streamAddress", streamAddress},  // (stream) => bigint
};

}  // namespace

void bindForeign(Napi::Object runtime, Session& session) {
  bind(runtime, kBindings, session);
}

}  // namespace nccl_ext
