# Fewer, larger translation units. TESSERA_UNITY puts the sources of a target into batches that are
# compiled as one (a header costs more than most sources), behind a precompiled header of the
# standard library. The preset `dev` does without, so that an edit of one file compiles one file.
#
# A batch holds sources of one folder, up to so many bytes of them: the names of one folder, also
# those in unnamed namespaces, must therefore differ. Each batch instantiates the templates of the
# types that all use, which takes as long as 50 KB of sources; one of 170 KB takes 1 GiB of memory.
set(unity_bytes 250000)

# tessera_precompile(NAME [LIBRARIES...] [OPTIONS...] [HEADERS...]): the precompiled header NAME, for
# targets with the same options: g++ 12 crashes where the levels of optimization differ.
function(tessera_precompile name)
  if(NOT TESSERA_UNITY)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 this "" "" "LIBRARIES;OPTIONS;HEADERS")
  set(empty "${PROJECT_BINARY_DIR}/generated/${name}.cpp")
  file(CONFIGURE OUTPUT "${empty}" CONTENT "")
  add_library(${name} OBJECT "${empty}")
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE ${this_OPTIONS})
  target_link_libraries(${name} PRIVATE tessera_flags tessera_fmt ${this_LIBRARIES})
  target_precompile_headers(
    ${name} PRIVATE
    <algorithm> <array> <atomic> <bit> <chrono> <cmath> <cstdint> <cstring> <filesystem>
    <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string>
    <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h> ${this_HEADERS})
endfunction()
tessera_precompile(tessera_precompiled)
tessera_precompile(tessera_precompiled_hot OPTIONS -O2)

# tessera_unity(TARGET PRECOMPILED OUTLIERS...): sources whose name is in OUTLIERS are compiled
# alone, since what they include defines macros that others trip over.
function(tessera_unity target precompiled)
  if(NOT TESSERA_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(batch 0)
  set(bytes 0)
  set(folder)
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME name)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${source}" is_generated)
    if(is_generated OR name IN_LIST ARGN OR NOT source MATCHES "\\.cpp$")
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(GET source PARENT_PATH parent)
    file(SIZE "${source}" size)
    math(EXPR total "${bytes} + ${size}")
    if(NOT parent STREQUAL folder OR total GREATER unity_bytes)
      math(EXPR batch "${batch} + 1")
      set(total ${size})
      set(folder "${parent}")
      set_property(GLOBAL APPEND PROPERTY TESSERA_BEGINNINGS "${source}")
    endif()
    set(bytes ${total})
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${target}_${batch}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
endfunction()
