# Toolchain file: builds for TESSERA_ARCH, x86_64 or aarch64, from any computer, with clang and the
# Debian packages that tools/sysroot unpacks into TESSERA_SYSROOT.

set(TESSERA_ARCH "$ENV{TESSERA_ARCH}" CACHE STRING "Architecture: x86_64 or aarch64")
set(TESSERA_SYSROOT "$ENV{TESSERA_SYSROOT}" CACHE PATH "Debian packages of that architecture, unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TESSERA_ARCH TESSERA_SYSROOT)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR "${TESSERA_ARCH}")

set(CMAKE_SYSROOT "${TESSERA_SYSROOT}")
set(CMAKE_LIBRARY_ARCHITECTURE ${TESSERA_ARCH}-linux-gnu)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET ${TESSERA_ARCH}-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET ${TESSERA_ARCH}-linux-gnu)
set(CMAKE_AR llvm-ar-19 CACHE FILEPATH "" FORCE)
set(CMAKE_RANLIB llvm-ranlib-19 CACHE FILEPATH "" FORCE)
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-fuse-ld=lld-19 -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,-s -Wl,-rpath,'$ORIGIN/lib'")
# Functions that clang calls and libgcc lacks: __muloti4, the product of 128 bits with its overflow.
set(CMAKE_CXX_STANDARD_LIBRARIES
    "${TESSERA_SYSROOT}/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.builtins-${TESSERA_ARCH}.a")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-fuse-ld=lld-19 -Wl,--gc-sections -Wl,-s")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${CMAKE_SHARED_LINKER_FLAGS_INIT}")

set(CMAKE_FIND_ROOT_PATH "${TESSERA_SYSROOT}")
# Where Debian keeps what its alternatives would link to.
list(APPEND CMAKE_SYSTEM_LIBRARY_PATH /usr/lib/${TESSERA_ARCH}-linux-gnu/openblas-pthread)
list(APPEND CMAKE_SYSTEM_INCLUDE_PATH /usr/include/${TESSERA_ARCH}-linux-gnu/openblas-pthread)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
