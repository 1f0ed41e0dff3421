# The targets behind tools/check: check_headers and check_tidy. Both redo only what changed.

get_property(sources GLOBAL PROPERTY TESSERA_SOURCES)
get_property(headers GLOBAL PROPERTY TESSERA_HEADERS)

# A source includes its own header first (tools/check_layers sees to it), so compiling the library
# has already compiled that header alone. What remains are the headers without a source.
set(units)
foreach(header IN LISTS headers)
  string(REGEX REPLACE "\\.h$" ".cpp" own_source "${header}")
  if(NOT own_source IN_LIST sources)
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${header}")
    set(unit "${PROJECT_BINARY_DIR}/check_headers/${path}.cpp")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "#include \"${path}\"\n")
    list(APPEND units "${unit}")
  endif()
endforeach()
if(units)
  add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${units})
  get_property(libraries GLOBAL PROPERTY TESSERA_LIBRARIES)
  target_link_libraries(check_headers PRIVATE ${libraries} tessera_flags)
  target_compile_options(check_headers PRIVATE -O0)
else()
  add_custom_target(check_headers)
endif()

# An object file is rebuilt when its source or a header of it changed: exactly when clang-tidy has
# to look again. The stamp therefore follows the object.
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
        COMMAND "${TESSERA_CLANG_TIDY}" --quiet -p "${PROJECT_BINARY_DIR}"
                --extra-arg=-Wno-unknown-warning-option "${source}"
        COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
        DEPENDS "${PROJECT_BINARY_DIR}/CMakeFiles/${target}.dir/${path}.o"
                "${PROJECT_SOURCE_DIR}/.clang-tidy"
        COMMENT "clang-tidy ${path}"
        VERBATIM)
      list(APPEND stamps "${stamp}")
    endforeach()
  endforeach()
endif()
add_custom_target(check_tidy DEPENDS ${stamps})
