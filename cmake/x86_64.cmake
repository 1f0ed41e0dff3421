# Toolchain file: builds for x86-64 from any computer, with clang and the Debian packages of a
# sysroot that tools/gpu-bundle unpacks. TESSERA_SYSROOT names it.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(TESSERA_SYSROOT "$ENV{TESSERA_SYSROOT}" CACHE PATH "Debian packages of amd64, unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TESSERA_SYSROOT)

set(CMAKE_SYSROOT "${TESSERA_SYSROOT}")
set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET x86_64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET x86_64-linux-gnu)
set(CMAKE_AR llvm-ar-19 CACHE FILEPATH "" FORCE)
set(CMAKE_RANLIB llvm-ranlib-19 CACHE FILEPATH "" FORCE)
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-fuse-ld=lld-19 -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,-s -Wl,-rpath,'$ORIGIN/lib'")

set(CMAKE_SHARED_LINKER_FLAGS_INIT "-fuse-ld=lld-19 -Wl,--gc-sections -Wl,-s")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${CMAKE_SHARED_LINKER_FLAGS_INIT}")

set(CMAKE_FIND_ROOT_PATH "${TESSERA_SYSROOT}")
# Where Debian keeps what its alternatives would link to.
list(APPEND CMAKE_SYSTEM_LIBRARY_PATH /usr/lib/x86_64-linux-gnu/openblas-pthread)
list(APPEND CMAKE_SYSTEM_INCLUDE_PATH /usr/include/x86_64-linux-gnu/openblas-pthread)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
