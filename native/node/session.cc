// SPDX-License-Identifier: Apache-2.0
#include "node/session.hpp"

namespace nccl_ext {
namespace {

void deliverMail(napi_env env, napi_value, void* context, void*) {
  // Without an environment the call comes from its end.
  if (env == nullptr) return;
  const Napi::HandleScope scope(env);
  if (Runtime* runtime = static_cast<Session*>(context)->runtime()) runtime->mailbox().deliver();
}

// What an environment owns.
struct Sessions {
  std::vector<std::unique_ptr<Session>> all;
};

}  // namespace

Session* Session::create(Napi::Env env, RuntimeConfig config) {
  Session* session = new Session(env);
  auto* sessions = env.GetInstanceData<Sessions>();
  if (sessions == nullptr) env.SetInstanceData(sessions = new Sessions());
  sessions->all.emplace_back(session);
  napi_create_threadsafe_function(env, nullptr, nullptr, Napi::String::New(env, "nccl-ext"), 0, 1, nullptr, nullptr,
                                  session, deliverMail, &session->function_);
  napi_unref_threadsafe_function(env, session->function_);
  napi_add_env_cleanup_hook(env, atEnvironmentEnd, session);
  session->runtime_ = std::make_unique<Runtime>(std::move(config), [session] {
    napi_call_threadsafe_function(session->function_, nullptr, napi_tsfn_nonblocking);
  });
  return session;
}

void Session::dispose() {
  if (!runtime_) return;
  runtime_.reset();
  for (const auto& deferred : std::exchange(pending_, {})) deferred->Resolve(failed(env_, gone()));
  napi_remove_env_cleanup_hook(env_, atEnvironmentEnd, this);
  napi_release_threadsafe_function(function_, napi_tsfn_abort);
}

void Session::atEnvironmentEnd(void* self) {
  static_cast<Session*>(self)->runtime_.reset();
}

void Session::hold() {
  if (runtime_) napi_ref_threadsafe_function(env_, function_);
}

void Session::release() {
  if (runtime_) napi_unref_threadsafe_function(env_, function_);
}

}  // namespace nccl_ext
