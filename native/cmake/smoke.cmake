# SPDX-License-Identifier: Apache-2.0
# Smoke kernels as a user would compile them: against the published headers alone, to cubins and PTX that tests load at run time.
set(smoke_folder "${CMAKE_BINARY_DIR}/smoke")
set(smoke_outputs "")
set(smoke_headers "${CMAKE_CURRENT_SOURCE_DIR}/tests/gpu/smoke/smoke.cuh")
foreach(header guard.hpp kernel.cuh ptx.cuh qualifiers.hpp records.hpp status.hpp sync.hpp)
  list(APPEND smoke_headers "${CMAKE_CURRENT_SOURCE_DIR}/../packages/cuda${NCCL_EXT_CUDA}/include/nccl_ext/${header}")
endforeach()

# name of the kernel file, suffix of the output, options of nvcc
function(add_smoke kernel suffix)
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/tests/gpu/smoke/${kernel}_smoke.cu")
  set(output "${smoke_folder}/${kernel}_smoke.${suffix}")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${smoke_folder}"
    COMMAND "${CMAKE_CUDA_COMPILER}" -ccbin "${CMAKE_CXX_COMPILER}" ${ARGN} -std=c++17 -Werror=all-warnings -Xcompiler=-Wall,-Wextra
      -I "${CMAKE_CURRENT_SOURCE_DIR}/../packages/cuda${NCCL_EXT_CUDA}/include" -isystem "${CUDA_ROOT}/include/cccl"
      -o "${output}" "${source}"
    DEPENDS "${source}" ${smoke_headers} VERBATIM)
  set(smoke_outputs "${smoke_outputs};${output}" PARENT_SCOPE)
endfunction()

foreach(kernel ep m2n)
  add_smoke(${kernel} cubin -cubin -arch=sm_90a)
  add_smoke(${kernel} ptx -ptx -arch=compute_90)
endforeach()
# For no GPU that the tests run on: it must be refused.
add_smoke(m2n sm_80.cubin -cubin -arch=sm_80)
add_custom_target(nccl_ext_smoke ALL DEPENDS ${smoke_outputs})
