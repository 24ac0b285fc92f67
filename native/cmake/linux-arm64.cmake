# SPDX-License-Identifier: Apache-2.0
# Debian's cross compiler; GoogleTest is built from its sources, which libgtest-dev brings.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
# Where qemu-user is, tests run under it.
find_program(QEMU_ARM64 qemu-aarch64)
if(QEMU_ARM64)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${QEMU_ARM64};-L;/usr/aarch64-linux-gnu")
endif()
