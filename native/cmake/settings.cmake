# SPDX-License-Identifier: Apache-2.0
# What every target shares: language, warnings, include roots, and the headers of Node-API.
find_package(Threads REQUIRED)

add_library(nccl_ext_settings INTERFACE)
target_include_directories(nccl_ext_settings INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}")
# As system headers, NVIDIA's compile without warnings (facts/native-style.md, section 5).
target_include_directories(nccl_ext_settings SYSTEM INTERFACE
  "${NCCL_ROOT}/include" "${CUDA_ROOT}/include" "${CUDA_ROOT}/include/cccl")
target_compile_options(nccl_ext_settings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Wall,-Wextra>)
target_link_libraries(nccl_ext_settings INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

# node-addon-api and the headers are devDependencies of the backend packages.
function(node_headers out)
  set(found "")
  foreach(expression "require('node-addon-api').include_dir" "require('node-api-headers').include_dir")
    execute_process(
      COMMAND node -p "require('path').resolve(${expression})"
      WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/../packages/cuda13"
      OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    list(APPEND found "${path}")
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# An addon of these sources for CUDA `major`.
function(add_node_addon target major)
  add_library(${target} MODULE ${ARGN})
  node_headers(headers)
  set_target_properties(${target} PROPERTIES
    PREFIX "" SUFFIX ".node"
    CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${target} SYSTEM PRIVATE ${headers})
  target_compile_definitions(${target} PRIVATE
    NAPI_VERSION=9 NAPI_DISABLE_CPP_EXCEPTIONS NODE_ADDON_API_DISABLE_DEPRECATED BUILDING_NODE_EXTENSION NCCL_EXT_CUDA_MAJOR=${major})
  target_link_libraries(${target} PRIVATE nccl_ext_settings)
endfunction()
