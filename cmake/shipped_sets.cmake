# sets/*.set as a source of tessera_superopt. This file is also the script that writes the source:
# cmake -DSETS=folder -DOUT=file -P shipped_sets.cmake

if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB files "${SETS}/*.set")
  list(SORT files)
  set(entries)
  foreach(file IN LISTS files)
    cmake_path(GET file FILENAME name)
    file(READ "${file}" text)
    string(APPEND entries "    {\"sets/${name}\", R\"set(${text})set\"},\n")
  endforeach()
  file(WRITE "${OUT}" "// Made from sets/*.set.\n\n#include \"tessera/superopt/generate/opset.h\"\n\n\
namespace tessera::superopt {\n\nstd::span<const ShippedSet> shipped_sets() {\n\
  static constexpr ShippedSet kSets[] = {\n${entries}  };\n  return kSets;\n}\n\n\
}  // namespace tessera::superopt\n")
  return()
endif()

file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/sets/*.set")
set(out "${PROJECT_BINARY_DIR}/generated/shipped_sets.cpp")
add_custom_command(
  OUTPUT "${out}"
  COMMAND "${CMAKE_COMMAND}" "-DSETS=${PROJECT_SOURCE_DIR}/sets" "-DOUT=${out}"
          -P "${CMAKE_CURRENT_LIST_FILE}"
  DEPENDS ${files} "${CMAKE_CURRENT_LIST_FILE}"
  COMMENT "Building the operator sets in"
  VERBATIM)
target_sources(tessera_superopt PRIVATE "${out}")
