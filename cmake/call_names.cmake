# SPDX-License-Identifier: Apache-2.0
# Writes {number, "name"} of each system call that the compiler's headers know, a line each.
function(baton_write_call_names OUT)
  file(WRITE ${PROJECT_BINARY_DIR}/call_names.cpp "#include <sys/syscall.h>\n")
  separate_arguments(FLAGS UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${FLAGS} -E -dM ${PROJECT_BINARY_DIR}/call_names.cpp OUTPUT_VARIABLE DEFINES
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "#define SYS_[a-z0-9_]+ __NR_" NAMES "${DEFINES}")
  list(TRANSFORM NAMES REPLACE "#define SYS_([a-z0-9_]+) __NR_" "{SYS_\\1, \"\\1\"},")
  list(SORT NAMES)
  list(JOIN NAMES "\n" TEXT)
  file(CONFIGURE OUTPUT ${OUT} CONTENT "${TEXT}\n")
endfunction()
