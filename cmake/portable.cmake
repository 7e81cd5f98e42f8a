# SPDX-License-Identifier: Apache-2.0
# Libraries that load on any Linux with glibc 2.28 (manylinux_2_28), made on Debian 12: included where BATON_PORTABLE names
# the folder that tools/devtool/portable.py filled with stubs of glibc 2.28 and of libstdc++ as of GCC 8. Objects are compiled
# as ever; the linker sees the stubs alone, and -z defs makes it refuse what they do not have. What libstdc++ has got since
# comes from libstdc++.a. LLVM is linked in.
file(GLOB GLIBC_STUBS ${BATON_PORTABLE}/lib/*.so.*)
foreach(file crti.o crtn.o crtbeginS.o crtendS.o libstdc++.a libgcc.a libgcc_s.so.1)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${file} OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(MAKE_C_IDENTIFIER ${file} name)
  set(PORTABLE_${name} ${path})
endforeach()

set(flags "-nostdlib -fuse-ld=lld -B${BATON_PORTABLE}/bin ${PORTABLE_crti_o} ${PORTABLE_crtbeginS_o} -Wl,--as-needed")
set(CMAKE_SHARED_LINKER_FLAGS "${CMAKE_SHARED_LINKER_FLAGS} ${flags}")
set(CMAKE_MODULE_LINKER_FLAGS "${CMAKE_MODULE_LINKER_FLAGS} ${flags}")
# What __FILE__ says is the same on every machine.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
# -Bsymbolic: libz.a and libzstd.a are not position-independent as to their own functions.
add_link_options(-Wl,-Bsymbolic -Wl,--eh-frame-hdr)
list(JOIN GLIBC_STUBS " " stubs)
set(libraries "${BATON_PORTABLE}/lib/stdc++/libstdc++.so.6 ${PORTABLE_libstdc___a} ${PORTABLE_libgcc_a} ${PORTABLE_libgcc_s_so_1} "
              "${stubs} ${BATON_PORTABLE}/lib/libc_nonshared.a ${PORTABLE_libgcc_a} ${PORTABLE_crtendS_o} ${PORTABLE_crtn_o}")
string(CONCAT libraries ${libraries})
set(CMAKE_CXX_STANDARD_LIBRARIES "${libraries}")
set(CMAKE_C_STANDARD_LIBRARIES "${libraries}")

add_library(baton_portable_shims OBJECT ${CMAKE_CURRENT_LIST_DIR}/portable_shims.c)
# Puts the shims into each of these targets, as far as they are there.
function(baton_portable_shims)
  foreach(target ${ARGN})
    if(TARGET ${target})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:baton_portable_shims>)
    endif()
  endforeach()
endfunction()

set(BATON_LLVM_TARGETS X86 AArch64 RISCV NVPTX WebAssembly)
# Sets `out` to LLVM's archives, and makes the objects that stand for what is left out of them. Needs find_package(LLVM).
function(baton_portable_llvm out)
  string(TOLOWER "${BATON_LLVM_TARGETS}" targets)
  execute_process(COMMAND ${LLVM_TOOLS_BINARY_DIR}/llvm-config --link-static --libfiles ${targets} orcjit passes lto option debuginfodwarf
                          perfjitevents
                  OUTPUT_VARIABLE libraries OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(libraries)
  list(FILTER libraries EXCLUDE REGEX "Polly")
  set(${out} ${libraries} PARENT_SCOPE)
  set(left_out ${LLVM_TARGETS_TO_BUILD})
  list(REMOVE_ITEM left_out ${BATON_LLVM_TARGETS})
  list(TRANSFORM left_out REPLACE "(.+)" "X(\\1)")
  list(JOIN left_out " " left_out)
  add_library(baton_portable_llvm OBJECT ${PROJECT_SOURCE_DIR}/src/codegen/llvm/left_out.cpp)
  target_include_directories(baton_portable_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_compile_features(baton_portable_llvm PRIVATE cxx_std_20)
  target_compile_definitions(baton_portable_llvm PRIVATE "BATON_TARGETS_LEFT_OUT=${left_out}")
endfunction()
