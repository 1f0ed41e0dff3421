# cost-models/*.trees as a source of tessera_lower. This file is also the script that writes the source:
# cmake -DMODELS=folder -DOUT=file -P cost_models.cmake

if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB files "${MODELS}/*.trees")
  list(SORT files)
  set(entries)
  foreach(file IN LISTS files)
    cmake_path(GET file STEM name)
    file(READ "${file}" text)
    # A literal for each tree: compilers need not take those beyond 64 KiB.
    string(REPLACE "\ntree " "\n)trees\"\n     R\"trees(tree " text "${text}")
    string(APPEND entries "    {\"${name}\",\n     R\"trees(${text})trees\"},\n")
  endforeach()
  file(WRITE "${OUT}" "// Made from the files of cost-models/.\n\n#include \"tessera/lower/cost_model.h\"\n\n\
namespace tessera::lower {\n\nstd::span<const ShippedCostModel> shipped_cost_models() {\n\
  static const ShippedCostModel kModels[] = {\n${entries}  };\n  return kModels;\n}\n\n\
}  // namespace tessera::lower\n")
  return()
endif()

file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cost-models/*.trees")
set(out "${PROJECT_BINARY_DIR}/generated/cost_models.cpp")
add_custom_command(
  OUTPUT "${out}"
  COMMAND "${CMAKE_COMMAND}" "-DMODELS=${PROJECT_SOURCE_DIR}/cost-models" "-DOUT=${out}"
          -P "${CMAKE_CURRENT_LIST_FILE}"
  DEPENDS ${files} "${CMAKE_CURRENT_LIST_FILE}"
  COMMENT "Building the cost models in"
  VERBATIM)
target_sources(tessera_lower PRIVATE "${out}")
