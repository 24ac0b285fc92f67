// SPDX-License-Identifier: Apache-2.0
// Which NCCL `nccl-ext nccl install` brings. The published command has no third_party/; a test keeps the two equal.

/** Major versions of CUDA that NCCL is built for. */
export const cudaMajors = [12, 13] as const;
export type CudaMajor = (typeof cudaMajors)[number];

/** One wheel of NCCL and what it must be. */
export interface NcclPin {
  readonly cuda: CudaMajor;
  /** The project's name in a package index. */
  readonly name: string;
  readonly version: string;
  /** The wheel's file name. */
  readonly file: string;
  /** Of the wheel, lower-case hexadecimal. */
  readonly sha256: string;
}

export const ncclPins: Readonly<Record<CudaMajor, NcclPin>> = {
  12: {
    cuda: 12,
    name: 'nvidia-nccl-cu12',
    version: '2.30.7',
    file: 'nvidia_nccl_cu12-2.30.7-py3-none-manylinux_2_18_x86_64.whl',
    sha256: '8ce1b8213f61f2bfac132e6df890af6450b77cbd140c6ce4e98cb0c2d8e678c9',
  },
  13: {
    cuda: 13,
    name: 'nvidia-nccl-cu13',
    version: '2.30.7',
    file: 'nvidia_nccl_cu13-2.30.7-py3-none-manylinux_2_18_x86_64.whl',
    sha256: 'cefa7fdb9710efd0f39c5f1be1d61ff6fc9a996c451265bd7fbdcf9455ed4b50',
  },
};
