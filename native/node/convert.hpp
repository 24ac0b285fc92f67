// SPDX-License-Identifier: Apache-2.0
// Between JavaScript's values and plain C++ ones. Wrong types become values that the runtime refuses with a typed
// error.
#pragma once

#include "node/napi_setup.hpp"
#include "runtime/runtime.hpp"

namespace nccl_ext {

// A safe integer, or -1, which no handle, size or offset is.
std::int64_t integerOf(const Napi::Value& value);
int smallIntegerOf(const Napi::Value& value);
// An unsigned 64-bit bigint, or 0, which no address is.
std::uint64_t addressOf(const Napi::Value& value);
std::string textOf(const Napi::Value& value);
// A number that is an integer; anything else is below every number that a call takes.
std::int64_t anyIntegerOf(const Napi::Value& value);
// Bytes of a Uint8Array, copied; empty for anything else.
Bytes bytesOf(const Napi::Value& value);
// Bytes of a Uint8Array in place, held until `keep` is gone; `keep` must go on JavaScript's thread.
HostSpan spanOf(const Napi::Value& value);

LocalRanksConfig localRanksConfigOf(const Napi::Value& value);
JoinConfig joinConfigOf(const Napi::Value& value);
// `LoadOptions` of contract/cuda-package.ts.
NcclChoice ncclChoiceOf(const Napi::Value& value);

// `ErrorRecord` of contract/outcome.ts.
Napi::Object toJs(Napi::Env env, const ErrorRecord& error);
Napi::Value toJs(Napi::Env env, const Bytes& bytes);
Napi::Value toJs(Napi::Env env, const std::vector<Bytes>& list);
Napi::Value toJs(Napi::Env env, const std::vector<Handle>& handles);
Napi::Value toJs(Napi::Env env, const Facts& facts);
// `SplitRank | undefined` of contract/runtime.ts.
Napi::Value toJs(Napi::Env env, const std::optional<SplitRank>& split);
Napi::Value toJs(Napi::Env env, Handle handle);
Napi::Value toJs(Napi::Env env, bool value);
Napi::Value toJs(Napi::Env env, double value);

// `Outcome` of contract/outcome.ts.
Napi::Object succeeded(Napi::Env env, Napi::Value value);
Napi::Object failed(Napi::Env env, const ErrorRecord& error);

template <class T>
Napi::Object toJs(Napi::Env env, const Outcome<T>& outcome) {
  return outcome ? succeeded(env, toJs(env, outcome.value())) : failed(env, outcome.error());
}

inline Napi::Object toJs(Napi::Env env, const Status& status) {
  return status ? succeeded(env, env.Undefined()) : failed(env, status.error());
}

}  // namespace nccl_ext
