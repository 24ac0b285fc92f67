// SPDX-License-Identifier: Apache-2.0
// One backend in one JavaScript environment: its runtime, and the way back to the environment's thread.
//
// R1 Promises are made and settled on the environment's thread. A pending one keeps the process alive, an idle backend
//    does not.
// R2 The environment's end comes through a cleanup hook that was added after the thread-safe function, so it runs before
//    that one dies: nobody is notified through a dead function.
// R3 A session lives as long as its environment, because JavaScript may keep the functions that lead to it; its runtime
//    goes with dispose().
#pragma once

#include <memory>
#include <unordered_set>

#include "node/convert.hpp"

namespace nccl_ext {

inline ErrorRecord gone() {
  return fail(ErrorCode::kDisposed, "backend", "the backend was disposed");
}

class Session {
 public:
  // Owned by the environment.
  static Session* create(Napi::Env env, RuntimeConfig config);

  // Null once disposed.
  Runtime* runtime() { return runtime_.get(); }
  ErrorRecord lastError = fail(ErrorCode::kInternal, "", "no call has failed yet");

  // A promise, and what settles it with the JavaScript form of an outcome or status.
  template <class T>
  std::pair<Napi::Value, std::function<void(T)>> promise() {
    auto deferred = std::make_shared<Napi::Promise::Deferred>(env_);
    pending_.insert(deferred);
    if (pending_.size() == 1) hold();
    return {deferred->Promise(), [this, deferred](T result) {
              if (pending_.erase(deferred) == 0) return;
              const Napi::HandleScope scope(env_);
              deferred->Resolve(toJs(env_, result));
              if (pending_.empty()) release();
            }};
  }

  // Ends the runtime; what is pending then settles with ERR_DISPOSED.
  void dispose();

 private:
  explicit Session(Napi::Env env) : env_(env) {}
  void hold();
  void release();
  static void atEnvironmentEnd(void* self);

  Napi::Env env_;
  std::unique_ptr<Runtime> runtime_;
  napi_threadsafe_function function_ = nullptr;
  std::unordered_set<std::shared_ptr<Napi::Promise::Deferred>> pending_;
};

}  // namespace nccl_ext
