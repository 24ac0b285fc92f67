# SPDX-License-Identifier: Apache-2.0
# Negative controls: the protocol tests built with one memory order of runtime/shared/sync.hpp weakened must make ThreadSanitizer report a
# race. A protocol test that stays quiet there would not see a missing edge either.

# Tests that write plain data before a release and read it after the acquire. Each must fail on its own.
set(RACE_TESTS
  tests/host/protocol_test.cc
  tests/host/transfer_protocol_test.cc)
set(RACE_FILTERS
  Barrier.MakesWhatWasWrittenBeforeVisibleAfterAcrossTheWrap
  Transfer.WritesOnlyBetweenGrantAndArrivalAcrossTheWrap)
# Of countIn, which is both ends of an edge.
set(RACE_FILTERS_acq_rel
  Transfer.WritesOnlyBetweenGrantAndArrivalAcrossTheWrap)
# What they link; compiled anew, because functions of the header are inline.
set(RACE_SOURCES
  runtime/status_text.cc)

file(READ runtime/shared/sync.hpp sync_header)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS runtime/shared/sync.hpp)

function(add_race_control order filters)
  set(target weak_${order}_tests)
  set(include "${CMAKE_BINARY_DIR}/weak-${order}")
  string(REPLACE "memory_order_${order}" "memory_order_relaxed" weak "${sync_header}")
  if(weak STREQUAL sync_header)
    message(FATAL_ERROR "runtime/shared/sync.hpp names no memory_order_${order}: nothing to weaken")
  endif()
  file(CONFIGURE OUTPUT "${include}/runtime/shared/sync.hpp" CONTENT "${weak}" @ONLY)
  add_executable(${target} ${RACE_TESTS} ${RACE_SOURCES})
  target_include_directories(${target} BEFORE PRIVATE "${include}")
  target_link_libraries(${target} PRIVATE nccl_ext_settings GTest::gtest_main)
  target_compile_features(${target} PRIVATE cxx_std_17)
  foreach(filter ${filters})
    add_test(NAME race_control.${order}.${filter} COMMAND ${target} --gtest_filter=${filter})
    set_tests_properties(race_control.${order}.${filter} PROPERTIES
      PASS_REGULAR_EXPRESSION "WARNING: ThreadSanitizer: data race" TIMEOUT 120)
  endforeach()
endfunction()

add_race_control(release "${RACE_FILTERS}")
add_race_control(acquire "${RACE_FILTERS}")
add_race_control(acq_rel "${RACE_FILTERS_acq_rel}")
