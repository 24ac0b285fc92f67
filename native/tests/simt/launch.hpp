// SPDX-License-Identifier: Apache-2.0
// What rewrite.mjs makes of launches and of shared variables.
#pragma once

#include "tests/simt/machine.hpp"

namespace nccl_ext::simt {

template <class... Parameters>
void launch(void (*kernel)(Parameters...), const Launch& launch, std::type_identity_t<Parameters>... arguments) {
  machine().enqueue(launch, [=] { kernel(arguments...); });
}

// A shared variable; each lambda has a type of its own, and so names one.
template <class Value, class Name>
Value& shared(Name) {
  static_assert(std::is_trivially_destructible_v<Value>);
  static const char tag = 0;
  return *static_cast<Value*>(machine().current()->cta->shared.variable(&tag, sizeof(Value), alignof(Value)));
}

// The shared memory that the launch asks for; null where that is nothing.
template <class Element>
Element* dynamicShared() {
  return static_cast<Element*>(machine().current()->cta->shared.dynamic());
}

}  // namespace nccl_ext::simt
