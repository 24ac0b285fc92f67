// SPDX-License-Identifier: Apache-2.0
// Transfers: named and typed as in core/src/contract/m2n.ts. Typed arrays are copied once, when a transfer is prepared.
#include <cmath>

#include "m2n/transfer_paths.hpp"
#include "node/bind_runtime.hpp"
#include "node/binding.hpp"

namespace nccl_ext {
namespace {

constexpr double kMaxSafeInteger = 9007199254740991.0;

// Elements of a typed array of this kind; none of anything else.
template <class Element>
std::vector<Element> elementsOf(const Napi::Value& value, napi_typedarray_type type) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type) return {};
  const auto array = value.As<Napi::TypedArrayOf<Element>>();
  return std::vector<Element>(array.Data(), array.Data() + array.ElementLength());
}

// Of a Float64Array; -1 for what is no integer from 0 to 2^53 - 1.
std::vector<std::int64_t> integersOf(const Napi::Value& value) {
  std::vector<std::int64_t> integers;
  const std::vector<double> numbers = elementsOf<double>(value, napi_float64_array);
  integers.reserve(numbers.size());
  for (const double number : numbers) {
    const bool fits = number >= 0 && number <= kMaxSafeInteger && std::trunc(number) == number;
    integers.push_back(fits ? static_cast<std::int64_t>(number) : -1);
  }
  return integers;
}

std::vector<std::int32_t> ranksOf(const Napi::Value& value) {
  return elementsOf<std::int32_t>(value, napi_int32_array);
}

Napi::Value field(const Napi::Value& object, const char* name) {
  return object.IsObject() ? object.As<Napi::Object>().Get(name) : object.Env().Undefined();
}

MoveTable tableOf(const Napi::Value& value) {
  MoveTable table;
  table.length = static_cast<std::size_t>(std::max<std::int64_t>(integerOf(field(value, "length")), 0));
  table.peer = ranksOf(field(value, "peer"));
  table.stage = elementsOf<std::uint8_t>(field(value, "stage"), napi_uint8_array);
  table.tensor = ranksOf(field(value, "tensor"));
  table.sourceTensor = ranksOf(field(value, "sourceTensor"));
  table.sourceOffset = integersOf(field(value, "sourceOffset"));
  table.destinationOffset = integersOf(field(value, "destinationOffset"));
  table.inner = integersOf(field(value, "inner"));
  table.counts = integersOf(field(value, "counts"));
  table.sourceStrides = integersOf(field(value, "sourceStrides"));
  table.destinationStrides = integersOf(field(value, "destinationStrides"));
  table.transform = elementsOf<std::uint16_t>(field(value, "transform"), napi_uint16_array);
  return table;
}

TransferProgram programOf(const Napi::Value& value) {
  TransferProgram program;
  program.rank = smallIntegerOf(field(value, "rank"));
  program.size = smallIntegerOf(field(value, "size"));
  program.digest = textOf(field(value, "digest"));
  program.sends = tableOf(field(value, "sends"));
  const Napi::Value receives = field(value, "receives");
  if (receives.IsObject()) program.receives = tableOf(receives);
  program.receivePeers = ranksOf(field(value, "receivePeers"));
  program.forwardPeers = ranksOf(field(value, "forwardPeers"));
  return program;
}

TensorBindings bindingsOf(const Napi::Value& value) {
  return {integersOf(field(value, "buffer")), integersOf(field(value, "byteOffset"))};
}

PrepareConfig prepareConfigOf(const Napi::Value& value) {
  PrepareConfig config;
  config.program = programOf(field(value, "program"));
  config.sources = bindingsOf(field(value, "sources"));
  config.destinations = bindingsOf(field(value, "destinations"));
  config.verify = field(value, "verify").ToBoolean();
  const Napi::Value sms = field(value, "sms");
  if (!sms.IsUndefined()) config.sms = smallIntegerOf(sms);
  config.path = textOf(field(value, "path"));
  return config;
}

Napi::Value prepareTransfer(Info info) {
  return withPromise<Outcome<Handle>>(info, [&](Runtime& runtime, auto done) {
    runtime.prepareTransfer(integerOf(info[0]), prepareConfigOf(info[1]), done);
  });
}

Napi::Value enqueueTransfer(Info info) {
  return withStatus(info,
                    [&](Runtime& runtime) { return runtime.enqueueTransfer(integerOf(info[0]), integerOf(info[1])); });
}

// Nothing is known about a transfer that is gone.
Napi::Value progressOf(Info info) {
  Runtime* runtime = sessionOf(info).runtime();
  const TransferProgress progress = runtime == nullptr ? TransferProgress() : runtime->progressOf(integerOf(info[0]));
  Napi::Object out = Napi::Object::New(info.Env());
  out.Set("writtenBytes", static_cast<double>(progress.writtenBytes));
  out.Set("completed", static_cast<double>(progress.completed));
  return out;
}

// Of one that is gone: none.
Napi::Value pathsOf(Info info) {
  Runtime* runtime = sessionOf(info).runtime();
  Napi::Array out = Napi::Array::New(info.Env());
  if (runtime == nullptr) return out;
  for (const TransferPath& path : runtime->pathsOf(integerOf(info[0]))) {
    Napi::Object one = Napi::Object::New(info.Env());
    one.Set("peer", static_cast<double>(path.peer));
    one.Set("direction", path.direction);
    one.Set("path", path.path);
    one.Set("bytes", static_cast<double>(path.bytes));
    one.Set("why", path.why);
    out.Set(out.Length(), one);
  }
  return out;
}

Napi::Value disposeTransfer(Info info) {
  return withPromise<Status>(info,
                             [&](Runtime& runtime, auto done) { runtime.disposeTransfer(integerOf(info[0]), done); });
}

constexpr Binding kBindings[] = {
    {"prepareTransfer", prepareTransfer},  // (rank, config) => Promise<Outcome<TransferHandle>>
    {"enqueueTransfer", enqueueTransfer},  // (transfer, stream) => Status
    {"progressOf", progressOf},            // (transfer) => TransferProgress
    {"pathsOf", pathsOf},                  // (transfer) => TransferPath[]
    {"disposeTransfer", disposeTransfer},  // (transfer) => Promise<Outcome<void>>
};

}  // namespace

Napi::Object bindM2n(Napi::Env env, Session& session) {
  Napi::Object m2n = Napi::Object::New(env);
  bind(m2n, kBindings, session);
  return m2n;
}

}  // namespace nccl_ext
