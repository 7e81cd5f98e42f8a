# SPDX-License-Identifier: Apache-2.0
# A toolchain file: the runtime and the server for another machine, by Debian's cross compilers. `./dev cross` gives BATON_TRIPLE.
set(BATON_TRIPLE "" CACHE STRING "The machine, as Debian's compilers have it: aarch64-linux-gnu, riscv64-linux-gnu, arm-linux-gnueabihf")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES BATON_TRIPLE)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${BATON_TRIPLE}")
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${BATON_TRIPLE}-gcc)
set(CMAKE_CXX_COMPILER ${BATON_TRIPLE}-g++)
set(CMAKE_FIND_ROOT_PATH /usr/${BATON_TRIPLE})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# mold is this machine's linker alone to these compilers.
set(MOLD OFF CACHE FILEPATH "")
