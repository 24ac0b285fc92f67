// SPDX-License-Identifier: Apache-2.0
// Contexts and streams of the fake libcuda.so.1, for its table.
#pragma once

namespace nccl_ext::fake {

void adoptStream(void* stream, int device, bool ownContext);
void forgetStream(void* stream);
void setCurrent(int device);
int current();

}  // namespace nccl_ext::fake
