# SPDX-License-Identifier: Apache-2.0
# CPack runs this in a package's folder before it packs it. Strips the programs, copies the libraries that they load into
# lib/, and makes both find them there. Left to the machine are the libraries of its compilers, which newer machines have
# in newer versions, MPI, which knows the network, and those of CUDA, which fit the driver. With CPACK_TESSERA_MPI, Open MPI is
# in the package, for one host: without its components for fast networks. env.sh tells it where it is.
foreach(program IN LISTS CPACK_TESSERA_PROGRAMS)
  set(program ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${program})
  if(NOT EXISTS ${program})
    message(FATAL_ERROR "${program} is not built; build the target tessera_install first")
  endif()
  list(APPEND programs ${program})
endforeach()
file(GLOB tests ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${CPACK_TESSERA_BIN}/*_tests)
list(APPEND programs ${tests})
if(NOT CPACK_TESSERA_PATCHELF)
  message(FATAL_ERROR "packages need patchelf, which is not installed")
endif()
set(machines "^ld-linux" "^lib(c|m|mvec|pthread|dl|rt|util|resolv|stdc\\+\\+|gcc_s)\\.so"
  "^lib(cuda|cudart|cublas|cublasLt|nvidia.*|nccl)\\.so")
set(components "")
if(CPACK_TESSERA_MPI)
  foreach(name IN ITEMS pkglibdir pkgdatadir bindir)
    execute_process(COMMAND ompi_info --parsable --path ${name} OUTPUT_VARIABLE path COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX REPLACE "^[^/]*:(/[^\n]*).*" "\\1" ${name} "${path}")
  endforeach()
  set(mpi ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${CPACK_TESSERA_LIB}/openmpi)
  file(GLOB components ${pkglibdir}/mca_*.so)
  list(FILTER components EXCLUDE REGEX "_(ucx|ofi|openib|psm2?|cm|netlink)\\.so$|/mca_(memheap|scoll|spml|sshmem|atomic)_")
  file(COPY ${components} DESTINATION ${mpi})
  file(COPY ${pkgdatadir}/ DESTINATION ${mpi}/share)
  foreach(name IN ITEMS orterun orted)
    file(COPY ${bindir}/${name} DESTINATION ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${CPACK_TESSERA_BIN})
    list(APPEND programs ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${CPACK_TESSERA_BIN}/${name})
  endforeach()
  file(CREATE_LINK orterun ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${CPACK_TESSERA_BIN}/mpirun SYMBOLIC)
  file(WRITE ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/env.sh
    "# source env.sh: finds the programs and Open MPI of this folder.\n"
    "OPAL_PREFIX=$(cd \"$(dirname \"\${BASH_SOURCE[0]}\")\" && pwd)\n"
    "export OPAL_PREFIX OPAL_PKGLIBDIR=$OPAL_PREFIX/${CPACK_TESSERA_LIB}/openmpi \\\n"
    "  OMPI_MCA_plm=isolated OPAL_PKGDATADIR=$OPAL_PREFIX/${CPACK_TESSERA_LIB}/openmpi/share PATH=$OPAL_PREFIX/${CPACK_TESSERA_BIN}:$PATH\n")
else()
  list(APPEND machines "^libmpi")
endif()
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} MODULES ${components} RESOLVED_DEPENDENCIES_VAR libraries
  UNRESOLVED_DEPENDENCIES_VAR missing PRE_EXCLUDE_REGEXES ${machines})
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
foreach(component IN LISTS components)
  cmake_path(GET component FILENAME name)
  execute_process(COMMAND ${CPACK_TESSERA_PATCHELF} --set-rpath "\$ORIGIN/.." ${mpi}/${name} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(RELATIVE_PATH from_bin /${CPACK_TESSERA_BIN} /${CPACK_TESSERA_LIB})
foreach(program IN LISTS programs)
  execute_process(COMMAND ${CPACK_TESSERA_STRIP} ${program} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CPACK_TESSERA_PATCHELF} --set-rpath "\$ORIGIN/${from_bin}" ${program}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
