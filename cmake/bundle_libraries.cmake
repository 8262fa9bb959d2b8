# SPDX-License-Identifier: Apache-2.0
# CPack runs this in a package's folder before it packs it. Strips the programs, copies the libraries that they load into
# lib/, and makes both find them there. Left to the machine are the libraries of its compilers, which newer machines have
# in newer versions, MPI, which knows the network, and those of CUDA, which fit the driver.
foreach(program IN LISTS CPACK_TESSERA_PROGRAMS)
  set(program ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${program})
  if(NOT EXISTS ${program})
    message(FATAL_ERROR "${program} is not built; build the target tessera_install first")
  endif()
  list(APPEND programs ${program})
endforeach()
if(NOT CPACK_TESSERA_PATCHELF)
  message(FATAL_ERROR "packages need patchelf, which is not installed")
endif()
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} RESOLVED_DEPENDENCIES_VAR libraries
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|mvec|pthread|dl|rt|util|resolv|stdc\\+\\+|gcc_s)\\.so" "^libmpi"
    "^lib(cuda|cudart|cublas|cublasLt|nvidia.*|nccl)\\.so")
if(missing)
  message(FATAL_ERROR "not found: ${missing}")
endif()

set(lib ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${CPACK_TESSERA_LIB})
file(MAKE_DIRECTORY ${lib})
foreach(library IN LISTS libraries)
  cmake_path(GET library FILENAME name)
  file(REAL_PATH ${library} file)
  file(COPY_FILE ${file} ${lib}/${name})
  execute_process(COMMAND ${CPACK_TESSERA_PATCHELF} --set-rpath "\$ORIGIN" ${lib}/${name} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(RELATIVE_PATH from_bin /${CPACK_TESSERA_BIN} /${CPACK_TESSERA_LIB})
foreach(program IN LISTS programs)
  execute_process(COMMAND ${CPACK_TESSERA_STRIP} ${program} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CPACK_TESSERA_PATCHELF} --set-rpath "\$ORIGIN/${from_bin}" ${program}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
