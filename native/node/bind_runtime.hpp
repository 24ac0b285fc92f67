// SPDX-License-Identifier: Apache-2.0
// `RuntimeSpi` of core/src/contract/runtime.ts as an object of functions.
#pragma once

#include "node/session.hpp"

namespace nccl_ext {

Napi::Object bindRuntime(Napi::Env env, Session& session);

}  // namespace nccl_ext
