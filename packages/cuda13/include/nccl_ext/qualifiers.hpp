// SPDX-License-Identifier: Apache-2.0
// Marks functions that compile for host and device, so that protocols are tested with g++ alone.
#pragma once

#if defined(__CUDACC__)
#define NCCL_EXT_HD __host__ __device__
#else
#define NCCL_EXT_HD
#endif
