// SPDX-License-Identifier: Apache-2.0
// What every function of a binding is made of: its call on the runtime, and the answer in the form that its contract
// asks for.
#pragma once

#include "node/session.hpp"

namespace nccl_ext {

using Info = const Napi::CallbackInfo&;

inline Session& sessionOf(Info info) {
  return *static_cast<Session*>(info.Data());
}

// Status: 0, or the number of an error that lastError() holds.
inline Napi::Value report(Info info, const Status& status) {
  if (status) return Napi::Number::New(info.Env(), 0);
  sessionOf(info).lastError = status.error();
  return Napi::Number::New(info.Env(), static_cast<std::int32_t>(status.error().code));
}

template <class Call>
Napi::Value withStatus(Info info, Call call) {
  Runtime* runtime = sessionOf(info).runtime();
  return report(info, runtime == nullptr ? Status(gone()) : call(*runtime));
}

template <class T, class Call>
Napi::Value withOutcome(Info info, Call call) {
  Runtime* runtime = sessionOf(info).runtime();
  return toJs(info.Env(), runtime == nullptr ? Outcome<T>(gone()) : call(*runtime));
}

// T: Outcome<...> or Status.
template <class T, class Call>
Napi::Value withPromise(Info info, Call call) {
  Session& session = sessionOf(info);
  auto [promise, settle] = session.promise<T>();
  if (session.runtime() == nullptr)
    settle(gone());
  else
    call(*session.runtime(), settle);
  return promise;
}

struct Binding {
  const char* name;
  Napi::Value (*function)(Info);
};

template <std::size_t Count>
void bind(Napi::Object object, const Binding (&bindings)[Count], Session& session) {
  for (const Binding& binding : bindings)
    object.Set(binding.name, Napi::Function::New(object.Env(), binding.function, binding.name, &session));
}

}  // namespace nccl_ext
