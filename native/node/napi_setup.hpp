// SPDX-License-Identifier: Apache-2.0
// The only include of napi.h: version 9, and no C++ exceptions, since nothing in the contract throws.
#pragma once

#include <napi.h>

#if !defined(NAPI_VERSION) || NAPI_VERSION != 9
#error "build with NAPI_VERSION=9"
#endif
