# SPDX-License-Identifier: Apache-2.0
# The addon of one CUDA major: static cudart, no libcuda, no NCCL, nothing exported but Node-API's entry points.
add_node_addon(nccl_ext ${NCCL_EXT_CUDA} ${NCCL_SOURCES} ${RUNTIME_SOURCES} ${M2N_SOURCES} ${KERNEL_SOURCES} ${NODE_SOURCES})
set_target_properties(nccl_ext PROPERTIES
  CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
  CUDA_RUNTIME_LIBRARY Static
  CUDA_ARCHITECTURES OFF
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/../packages/cuda${NCCL_EXT_CUDA}/prebuilds/linux-x64")
# Nothing leaves but Node-API's entry points: no instantiated template of libstdc++, no symbol of the static cudart.
target_link_options(nccl_ext PRIVATE "-Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map" -Wl,--gc-sections)
set_target_properties(nccl_ext PROPERTIES LINK_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map")
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_link_options(nccl_ext PRIVATE -Wl,--strip-all)
endif()

# Pairs of compute and sm; the last one of a release also as PTX, for GPUs that are newer than the toolkit.
if(NOT NCCL_EXT_RELEASE)
  set(architectures 80 90a)
  set(ptx "")
elseif(NCCL_EXT_CUDA EQUAL 12)
  set(architectures 80 90a)
  set(ptx 90)
else()
  set(architectures 80 90a 100f 120f)
  set(ptx 120)
endif()
set(generate "")
foreach(architecture ${architectures})
  list(APPEND generate "--generate-code=arch=compute_${architecture},code=[sm_${architecture}]")
endforeach()
foreach(architecture ${ptx})
  list(APPEND generate "--generate-code=arch=compute_${architecture},code=[compute_${architecture}]")
endforeach()
# No contraction and no flush to zero: CUDA's results equal the embedded backend's bit for bit (design, section 2 invariant 5).
target_compile_options(nccl_ext PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:${generate};-Xfatbin=-compress-all;-fmad=false;-ftz=false;-prec-div=true;-prec-sqrt=true>")

string(REPLACE ";" "\", \"" architecture_list "${architectures}")
set(ptx_list "")
if(ptx)
  set(ptx_list "\"${ptx}\"")
endif()
file(GENERATE OUTPUT "${CMAKE_CURRENT_SOURCE_DIR}/../packages/cuda${NCCL_EXT_CUDA}/prebuilds/linux-x64/build.json" CONTENT
"{
  \"cudaMajor\": ${NCCL_EXT_CUDA},
  \"nvcc\": \"${CMAKE_CUDA_COMPILER_VERSION}\",
  \"compiler\": \"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\",
  \"architectures\": [\"${architecture_list}\"],
  \"ptx\": [${ptx_list}],
  \"nodeApi\": 9
}
")
