# SPDX-License-Identifier: Apache-2.0
# Every build runs cmake -D SOURCE_DIR=.. -D OUTPUT=.. -D VERSION=.. ... -P write_build_info.cmake
function(git out)
  set(${out} "" PARENT_SCOPE)
  if(git_program)
    execute_process(COMMAND ${git_program} -C ${SOURCE_DIR} ${ARGN} OUTPUT_VARIABLE text
      RESULT_VARIABLE status ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(status EQUAL 0)
      set(${out} "${text}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

# A source tree that was unpacked inside another repository has no revision.
find_program(git_program git)
git(top rev-parse --show-cdup)
git(revision rev-parse HEAD)
if(revision STREQUAL "" OR NOT top STREQUAL "")
  set(revision unknown)
  set(dirty false)
else()
  git(changes status --porcelain --untracked-files=no)
  if(changes STREQUAL "")
    set(dirty false)
  else()
    set(dirty true)
  endif()
endif()
string(STRIP "${CXX_FLAGS}" CXX_FLAGS)
string(REPLACE "\\" "\\\\" CXX_FLAGS "${CXX_FLAGS}")
string(REPLACE "\"" "\\\"" CXX_FLAGS "${CXX_FLAGS}")

file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Generated at build time by cmake/write_build_info.cmake.
#pragma once

#include <string_view>

namespace tessera::build_info {

inline constexpr std::string_view version = "@VERSION@";
/// Full hash of the commit, or "unknown" outside a git checkout.
inline constexpr std::string_view git_revision = "@revision@";
/// True if tracked files differed from that commit.
inline constexpr bool git_dirty = @dirty@;
inline constexpr std::string_view build_type = "@BUILD_TYPE@";
inline constexpr std::string_view compiler = "@COMPILER@";
inline constexpr std::string_view cxx_flags = "@CXX_FLAGS@";
/// Version of the HDF5 that reads data sets; empty without one.
inline constexpr std::string_view hdf5_version = "@HDF5_VERSION@";

}  // namespace tessera::build_info
]])
