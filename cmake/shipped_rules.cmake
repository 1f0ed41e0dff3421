# rules/*.rules, rules/generated/*.rules and rules/mutants/*.rules as a source of tessera_rules. This file is also the script that writes the source:
# cmake -DRULES=folder -DOUT=file -P shipped_rules.cmake

if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB files "${RULES}/*.rules" "${RULES}/generated/*.rules" "${RULES}/mutants/*.rules")
  list(SORT files)
  set(entries)
  foreach(file IN LISTS files)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${RULES}" OUTPUT_VARIABLE name)
    file(READ "${file}" text)
    # A literal for each rule: compilers need not take those beyond 64 KiB.
    string(REPLACE "\nrule " "\n)rules\"\n     R\"rules(rule " text "${text}")
    string(APPEND entries "    {\"rules/${name}\",\n     R\"rules(${text})rules\"},\n")
  endforeach()
  file(WRITE "${OUT}" "// Made from the files of rules/.\n\n#include \"tessera/rules/shipped.h\"\n\n\
namespace tessera::rules {\n\nstd::span<const ShippedFile> shipped_files() {\n\
  static constexpr ShippedFile kFiles[] = {\n${entries}  };\n  return kFiles;\n}\n\n\
}  // namespace tessera::rules\n")
  return()
endif()

file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/rules/*.rules"
     "${PROJECT_SOURCE_DIR}/rules/generated/*.rules" "${PROJECT_SOURCE_DIR}/rules/mutants/*.rules")
set(out "${PROJECT_BINARY_DIR}/generated/shipped_rules.cpp")
add_custom_command(
  OUTPUT "${out}"
  COMMAND "${CMAKE_COMMAND}" "-DRULES=${PROJECT_SOURCE_DIR}/rules" "-DOUT=${out}"
          -P "${CMAKE_CURRENT_LIST_FILE}"
  DEPENDS ${files} "${CMAKE_CURRENT_LIST_FILE}"
  COMMENT "Building the shipped rules in"
  VERBATIM)
target_sources(tessera_rules PRIVATE "${out}")
