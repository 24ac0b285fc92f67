// SPDX-License-Identifier: Apache-2.0
// `RuntimeSpi` of core/src/contract/runtime.ts as an object of functions.
#pragma once

#include "node/session.hpp"

namespace nccl_ext {

Napi::Object bindRuntime(Napi::Env env, Session& session);

// `M2nSpi` of core/src/contract/m2n.ts (bind_m2n.cc).
Napi::Object bindM2n(Napi::Env env, Session& session);

// Adds the functions of bind_kernels.cc to it.
void bindKernels(Napi::Object runtime, Session& session);

// Adds the functions of bind_foreign.cc to it.
void bindForeign(Napi::Object runtime, Session& session);

}  // namespace nccl_ext
