# SPDX-License-Identifier: Apache-2.0
# Makes a manual page. Usage: cmake -D HELP2MAN=.. -D PROGRAM=<file> -D SUBCOMMAND=<name or nothing> -D NAME=tessera-run
#                      -D VERSION=.. -D OUTPUT=.. -P write_manual.cmake
execute_process(COMMAND ${PROGRAM} ${SUBCOMMAND} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(STRIP "${PROGRAM} ${SUBCOMMAND}" command)
# The first line of the help is the purpose.
string(REGEX MATCH "^[^\n]*" purpose "${help}")
execute_process(COMMAND ${HELP2MAN} --no-info --version-string ${VERSION} --manual Tessera --name "${purpose}" ${command}
  OUTPUT_VARIABLE page COMMAND_ERROR_IS_FATAL ANY)

# help2man expects a program's name to be one word, and joins the lines of examples; both are corrected.
get_filename_component(program ${PROGRAM} NAME)
string(STRIP "${program} ${SUBCOMMAND}" words)
string(TOUPPER "${NAME}" upper_name)
string(REGEX REPLACE "\n.TH [^\"]*\"" "\n.TH ${upper_name} \"" page "${page}")
string(REPLACE ".SH NAME\n${words} " ".SH NAME\n${NAME} " page "${page}")
if(help MATCHES "\nExamples:\n(.*)\n\n")
  string(REPLACE "\\" "\\\\" examples "${CMAKE_MATCH_1}")
  string(REPLACE "-" "\\-" examples "${examples}")
  string(FIND "${page}" ".SH EXAMPLES\n" begin)
  string(SUBSTRING "${page}" 0 ${begin} before)
  string(SUBSTRING "${page}" ${begin} -1 after)
  string(FIND "${after}" "\n.PP\n" end REVERSE)
  string(SUBSTRING "${after}" ${end} -1 after)
  set(page "${before}.SH EXAMPLES\n.nf\n${examples}\n.fi${after}")
endif()
file(WRITE ${OUTPUT} "${page}")
