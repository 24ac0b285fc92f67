# SPDX-License-Identifier: Apache-2.0
# The kernels themselves on the host: CUDA C++ that the host compiler takes with tests/simt/words.hpp before it. CUDA threads are fibers
# of one thread, which ThreadSanitizer knows nothing about.

set(SIMT_KERNELS ${KERNEL_SOURCES} values/values.cu tests/simt/machine_test.cu)

set(simt_rewritten "")
foreach(kernel ${SIMT_KERNELS})
  set(rewritten "${CMAKE_BINARY_DIR}/simt/${kernel}.cc")
  add_custom_command(
    OUTPUT "${rewritten}"
    COMMAND node "${CMAKE_CURRENT_SOURCE_DIR}/tests/simt/rewrite.mjs" "${CMAKE_CURRENT_SOURCE_DIR}/${kernel}" "${rewritten}"
    DEPENDS "${kernel}" tests/simt/rewrite.mjs
    VERBATIM)
  list(APPEND simt_rewritten "${rewritten}")
endforeach()

add_executable(simt_tests ${simt_rewritten}
  m2n/bundle_moves.cc
  m2n/hash_side.cc
  m2n/hash_tiles.cc
  m2n/move_shape.cc
  m2n/program_image.cc
  m2n/tile_bundles.cc
  tests/simt/barrier_test.cc
  tests/simt/bulk_engine.cc
  tests/simt/collectives.cc
  tests/simt/cudart.cc
  tests/simt/fiber.cc
  tests/simt/hash_test.cc
  tests/simt/machine.cc
  tests/simt/memory.cc
  tests/simt/moves_test.cc
  tests/simt/shared_memory.cc
  tests/simt/transfer_test.cc
  tests/simt/values_test.cc)
# Its <cuda/atomic>, ptx.cuh, bulk_ptx.cuh and arch.cuh come before those that they stand for.
target_include_directories(simt_tests BEFORE PRIVATE tests/simt/include)
target_compile_options(simt_tests PRIVATE "SHELL:-include tests/simt/words.hpp" -Wno-unknown-pragmas)
target_compile_features(simt_tests PRIVATE cxx_std_20)
target_link_libraries(simt_tests PRIVATE nccl_ext_settings GTest::gtest_main)
gtest_discover_tests(simt_tests PROPERTIES TIMEOUT 120 DISCOVERY_TIMEOUT 60)
