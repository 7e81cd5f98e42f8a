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
# -Bsymbolic: libz.a and libzstd.a are not position-independent as to their own functions.
add_link_options(-Wl,-Bsymbolic -Wl,--eh-frame-hdr)
list(JOIN GLIBC_STUBS " " stubs)
set(libraries "${BATON_PORTABLE}/lib/stdc++/libstdc++.so.6 ${PORTABLE_libstdc___a} ${PORTABLE_libgcc_s_so_1} ${PORTABLE_libgcc_a} "
              "${stubs} ${BATON_PORTABLE}/lib/libc_nonshared.a ${PORTABLE_libgcc_a} ${PORTABLE_crtendS_o} ${PORTABLE_crtn_o}")
string(CONCAT libraries ${libraries})
set(CMAKE_CXX_STANDARD_LIBRARIES "${libraries}")
set(CMAKE_C_STANDARD_LIBRARIES "${libraries}")

add_library(baton_portable_shims OBJECT ${CMAKE_CURRENT_LIST_DIR}/portable_shims.c)
link_libraries($<TARGET_OBJECTS:baton_portable_shims>)
