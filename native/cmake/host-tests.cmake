# SPDX-License-Identifier: Apache-2.0
# Host tests: everything but kernels, compiled by the host compiler against real headers and run on fake CUDA and NCCL.
if(NCCL_EXT_SANITIZE)
  add_compile_options(-fsanitize=${NCCL_EXT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1)
  # GCC 12 warns falsely about std::variant when it instruments it.
  add_compile_options(-Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${NCCL_EXT_SANITIZE})
endif()

if(CMAKE_CROSSCOMPILING)
  # Debian's package has libraries of this machine only, but the sources too.
  set(INSTALL_GTEST OFF)
  add_subdirectory(/usr/src/googletest googletest EXCLUDE_FROM_ALL)
else()
  find_package(GTest REQUIRED)
endif()

# A fake library under its real name in a folder of its own, and its path as a macro for the tests.
function(add_fake kind variant name)
  set(target fake_${kind}_${variant})
  add_library(${target} SHARED tests/fake/fake_${kind}.cc)
  if(kind STREQUAL "cuda")
    foreach(part contexts graphs ipc memory modules virtual_memory)
      target_sources(${target} PRIVATE tests/fake/fake_${part}.cc)
    endforeach()
  endif()
  if(kind STREQUAL "nccl")
    foreach(part groups processes windows)
      target_sources(${target} PRIVATE tests/fake/fake_nccl_${part}.cc)
    endforeach()
  endif()
  target_link_libraries(${target} PRIVATE nccl_ext_settings)
  target_compile_features(${target} PRIVATE cxx_std_17)
  target_compile_definitions(${target} PRIVATE ${ARGN})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} SUFFIX "" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fake/${kind}-${variant}")
  string(TOUPPER "FAKE_${kind}_${variant}" macro)
  target_compile_definitions(nccl_ext_fakes INTERFACE ${macro}="${CMAKE_BINARY_DIR}/fake/${kind}-${variant}/${name}")
  add_dependencies(nccl_ext_fakes ${target})
endfunction()

add_library(nccl_ext_fakes INTERFACE)
add_fake(cuda good libcuda.so.1 FAKE_CUDA_VERSION=13000 FAKE_CUDA_INIT=0 FAKE_CUDA_DEVICES=1)
add_fake(cuda old libcuda.so.1 FAKE_CUDA_VERSION=12040 FAKE_CUDA_INIT=0 FAKE_CUDA_DEVICES=1)
add_fake(cuda no_gpu libcuda.so.1 FAKE_CUDA_VERSION=13000 FAKE_CUDA_INIT=100 FAKE_CUDA_DEVICES=0)
add_fake(nccl good libnccl.so.2 FAKE_NCCL_VERSION=23007 FAKE_NCCL_NAME="good" FAKE_NCCL_CUDA="13")
add_fake(nccl old libnccl.so.2 FAKE_NCCL_VERSION=22803 FAKE_NCCL_NAME="old" FAKE_NCCL_CUDA="13")
add_fake(nccl new libnccl.so.2 FAKE_NCCL_VERSION=24001 FAKE_NCCL_NAME="new" FAKE_NCCL_CUDA="13")
add_fake(nccl incomplete libnccl.so.2 FAKE_NCCL_VERSION=23007 FAKE_NCCL_NAME="incomplete" FAKE_NCCL_CUDA="13" FAKE_NCCL_INCOMPLETE)

# The product's host code with the CUDA runtime replaced.
add_library(nccl_ext_host OBJECT ${NCCL_SOURCES} ${RUNTIME_SOURCES} ${M2N_SOURCES}
  tests/fake/fake_barrier.cc
  tests/fake/fake_cudart.cc
  tests/fake/fake_cudart_events.cc
  tests/fake/fake_cudart_graphs.cc
  tests/fake/fake_cudart_memory.cc
  tests/fake/fake_cudart_streams.cc
  tests/fake/fake_hash.cc
  tests/fake/fake_moves.cc
  tests/fake/fake_transfer.cc)
target_link_libraries(nccl_ext_host PUBLIC nccl_ext_settings)
target_compile_features(nccl_ext_host PUBLIC cxx_std_17)
set_target_properties(nccl_ext_host PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)

add_executable(host_tests
  tests/host/bundle_moves_test.cc
  tests/host/cast_test.cc
  tests/host/copy_engines_test.cc
  tests/host/cut_moves_test.cc
  tests/host/descriptor_test.cc
  tests/host/driver_test.cc
  tests/host/engine_copies_test.cc
  tests/host/foreign_streams_test.cc
  tests/host/hash_test.cc
  tests/host/identity_test.cc
  tests/host/join_test.cc
  tests/host/kernel_guard_test.cc
  tests/host/kernels_test.cc
  tests/host/loader_test.cc
  tests/host/lost_records_test.cc
  tests/host/meeting_test.cc
  tests/host/meeting_watch_test.cc
  tests/host/modules_test.cc
  tests/host/prepare_test.cc
  tests/host/protocol_test.cc
  tests/host/reach_test.cc
  tests/host/runtime_test.cc
  tests/host/sent_ends_test.cc
  tests/host/sent_transfers_test.cc
  tests/host/share_memory_test.cc
  tests/host/split_test.cc
  tests/host/streams_test.cc
  tests/host/tcp_frames_test.cc
  tests/host/tcp_meeting_test.cc
  tests/host/torn_transfers_test.cc
  tests/host/transfer_protocol_test.cc
  tests/host/transfers_test.cc
  tests/host/values_test.cc
  tests/host/windows_test.cc
  tests/host/wrap_memory_test.cc
  tests/support/main.cc)
target_link_libraries(host_tests PRIVATE nccl_ext_host nccl_ext_fakes GTest::gtest)

include(GoogleTest)
if(CMAKE_CROSSCOMPILING)
  # Under qemu-user, where it is (scripts/native-test.mjs).
  add_test(NAME host_tests COMMAND host_tests)
  # For the tests alone: the emulator is a program of this machine.
  set_tests_properties(host_tests PROPERTIES TIMEOUT 600
    ENVIRONMENT "QEMU_SET_ENV=LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/fake/cuda-good")
else()
  gtest_discover_tests(host_tests
    PROPERTIES ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/fake/cuda-good" TIMEOUT 60
    DISCOVERY_TIMEOUT 60)
endif()

# The same as an addon, so that the binding runs under Node without a GPU (scripts/native-test.mjs).
if(NOT NCCL_EXT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_node_addon(nccl_ext_fake 13 ${NODE_SOURCES})
  target_link_libraries(nccl_ext_fake PRIVATE nccl_ext_host)
  set_target_properties(nccl_ext_fake PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  add_dependencies(nccl_ext_fake fake_cuda_good fake_nccl_good)
endif()

if(NCCL_EXT_SANITIZE STREQUAL "thread")
  include(cmake/race-controls.cmake)
endif()

# What kernels compute does not depend on the host's CPU.
if(NOT NCCL_EXT_SANITIZE STREQUAL "thread" AND NOT CMAKE_CROSSCOMPILING)
  include(cmake/simt-tests.cmake)
endif()
