# SPDX-License-Identifier: Apache-2.0
# Makes <tessera_build_info.hpp>, which describes this build and is private to the library. Every build looks up the git
# revision; the header is rewritten only when its text changes.

# tessera_add_build_info(<target>): lets the sources of <target> include the header.
function(tessera_add_build_info target)
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(flags ${CMAKE_CXX_FLAGS})
  foreach(config Debug Release RelWithDebInfo MinSizeRel)
    string(TOUPPER ${config} upper)
    string(APPEND flags "$<$<CONFIG:${config}>: ${CMAKE_CXX_FLAGS_${upper}}>")
  endforeach()
  if(TESSERA_NATIVE)
    string(APPEND flags " -march=native")
  endif()
  add_custom_target(${target}_build_info
    COMMAND ${CMAKE_COMMAND}
      -D SOURCE_DIR=${PROJECT_SOURCE_DIR}
      -D OUTPUT=${dir}/tessera_build_info.hpp
      -D VERSION=${PROJECT_VERSION}
      -D BUILD_TYPE=$<CONFIG>
      -D "COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
      -D "CXX_FLAGS=${flags}"
      -D "HDF5_VERSION=$<$<BOOL:${TESSERA_ENABLE_HDF5}>:${HDF5C_VERSION}>"
      -P ${PROJECT_SOURCE_DIR}/cmake/write_build_info.cmake
    BYPRODUCTS ${dir}/tessera_build_info.hpp
    COMMENT "Checking the git revision"
    VERBATIM)
  add_dependencies(${target} ${target}_build_info)
  target_include_directories(${target} PRIVATE ${dir})
endfunction()
