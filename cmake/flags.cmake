# tessera_flags: warnings are errors, and what the preset adds for the whole tree.

add_library(tessera_flags INTERFACE)
target_compile_options(tessera_flags INTERFACE -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual
                                               -Wvla -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Both report false findings in inlined library code (g++ 12: std::string, std::optional,
  # std::variant); the sanitizers and clang-tidy watch for the real ones.
  target_compile_options(tessera_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
  if(TESSERA_UNITY)
    # In a unit of several sources, it takes each for a header.
    target_compile_options(tessera_flags INTERFACE -Wno-subobject-linkage)
    # No garbage collection below 1 GiB (in KiB): it took a tenth of the time of a large batch.
    add_compile_options(--param=ggc-min-heapsize=1048576)
  endif()
  # The code of a Python module and of a program is the same (position independent): functions of
  # a library may be inlined into their callers there, as clang does.
  add_compile_options(-fno-semantic-interposition)
  # Notes on how AArch64 passes arguments since C++17: nothing here is linked with older objects.
  target_compile_options(tessera_flags INTERFACE -Wno-psabi)
else()
  # clang takes std::stable_sort of libstdc++ 12 for a use of what it calls deprecated.
  target_compile_options(tessera_flags INTERFACE -Wno-deprecated-declarations)
endif()

set(TESSERA_SANITIZE "" CACHE STRING "Sanitizers for everything, e.g. address,undefined")
if(TESSERA_SANITIZE)
  add_compile_options(-fsanitize=${TESSERA_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TESSERA_SANITIZE})
endif()

find_program(TESSERA_CCACHE ccache)
if(TESSERA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TESSERA_CCACHE}")
  if(TESSERA_UNITY)  # as ccache's manual asks for where headers are precompiled
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                    "${TESSERA_CCACHE}")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      add_compile_options(-fpch-preprocess)
    endif()
  endif()
endif()
