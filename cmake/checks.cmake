# The targets behind tools/check: check_headers and check_tidy. Both redo only what changed.

get_property(sources GLOBAL PROPERTY TESSERA_SOURCES)
get_property(headers GLOBAL PROPERTY TESSERA_HEADERS)

# Every header compiles alone. A source includes its own header first (tools/check_layers sees to
# it), so that the build shows it for the headers that its units begin with, each before which nothing
# of ours is known that it does not include; header_units.py writes units for the others. With a
# precompiled header, what a header forgets of the standard library is seen by the preset `dev`.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(beginnings "${sources}")
if(TESSERA_UNITY)
  get_property(beginnings GLOBAL PROPERTY TESSERA_BEGINNINGS)
endif()
set(units_folder "${PROJECT_BINARY_DIR}/check_headers")
string(REPLACE ";" "\n" header_lines "${headers}")
string(REPLACE "${PROJECT_SOURCE_DIR}/" "" header_lines "${header_lines}")
string(REPLACE ";" "\n" beginning_lines "${beginnings}")
file(WRITE "${units_folder}/headers" "${header_lines}")
file(WRITE "${units_folder}/sources" "${beginning_lines}")
execute_process(COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/header_units.py" "${PROJECT_SOURCE_DIR}"
                        "${units_folder}" "${units_folder}/sources"
                INPUT_FILE "${units_folder}/headers" OUTPUT_VARIABLE units COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "\n$" "" units "${units}")
string(REPLACE "\n" ";" units "${units}")
set(llvm_units "${units}")
list(FILTER llvm_units INCLUDE REGEX "^${units_folder}/tessera/codegen/")
list(FILTER units EXCLUDE REGEX "^${units_folder}/tessera/codegen/")
get_property(libraries GLOBAL PROPERTY TESSERA_LIBRARIES)
add_custom_target(check_headers)
function(tessera_check_headers target precompiled) # UNITS...
  if(NOT ARGN)
    return()
  endif()
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  target_link_libraries(${target} PRIVATE ${libraries} tessera_flags)
  if(TESSERA_UNITY)
    target_precompile_headers(${target} REUSE_FROM ${precompiled})
  endif()
  add_dependencies(check_headers ${target})
endfunction()
tessera_check_headers(check_plain_headers tessera_precompiled ${units})
tessera_check_headers(check_llvm_headers tessera_precompiled_llvm ${llvm_units})

# clang-tidy looks at single sources, whatever the batches. A stamp is older than its source or one
# of its headers exactly when clang-tidy has to look again.
find_program(TESSERA_CLANG_TIDY clang-tidy)
set(stamps)
if(TESSERA_CLANG_TIDY)
  get_property(libraries GLOBAL PROPERTY TESSERA_LIBRARIES)
  foreach(target IN LISTS libraries ITEMS tessera)
    if(NOT TARGET ${target} OR target STREQUAL "tessera_onnx_schema")
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")
      continue()
    endif()
    get_target_property(target_sources ${target} SOURCES)
    # Foreign headers are system headers, in which nothing is found.
    set(foreign "$<FILTER:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>,EXCLUDE,^${PROJECT_SOURCE_DIR}$>")
    set(defined "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
    set(tidy_flags -std=c++20 -Wall -Wextra "-I${PROJECT_SOURCE_DIR}"
                   "$<$<BOOL:${foreign}>:-isystem$<JOIN:${foreign},;-isystem>>"
                   "$<$<BOOL:${defined}>:-D$<JOIN:${defined},;-D>>")
    foreach(source IN LISTS target_sources)
      cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${source}" is_generated)
      if(is_generated)
        continue()
      endif()
      file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${source}")
      set(stamp "${PROJECT_BINARY_DIR}/check_tidy/${path}.stamp")
      cmake_path(GET stamp PARENT_PATH stamp_folder)
      file(MAKE_DIRECTORY "${stamp_folder}")
      add_custom_command(
        OUTPUT "${stamp}"
        COMMAND "${TESSERA_CLANG_TIDY}" --quiet "${source}" -- ${tidy_flags}
        COMMAND "${CMAKE_CXX_COMPILER}" -MM -MT "${stamp}" -MF "${stamp}.d" ${tidy_flags} "${source}"
        COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
        DEPENDS "${source}" "${PROJECT_SOURCE_DIR}/.clang-tidy"
                $<$<TARGET_EXISTS:tessera_onnx_schema>:tessera_onnx_schema>
        DEPFILE "${stamp}.d"
        COMMENT "clang-tidy ${path}"
        COMMAND_EXPAND_LISTS VERBATIM)
      list(APPEND stamps "${stamp}")
    endforeach()
  endforeach()
endif()
add_custom_target(check_tidy DEPENDS ${stamps})
