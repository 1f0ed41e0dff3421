# Reads layers.txt into TESSERA_FOLDERS, TESSERA_USES_<folder> (with what those use) and
# TESSERA_FOREIGN_<folder>, and turns a folder into a target.

set(layers_file "${CMAKE_CURRENT_LIST_DIR}/layers.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${layers_file}")
file(STRINGS "${layers_file}" layer_lines REGEX "^(folder|foreign) ")
foreach(line IN LISTS layer_lines)
  separate_arguments(words UNIX_COMMAND "${line}")
  list(POP_FRONT words kind name)
  if(kind STREQUAL "folder")
    list(APPEND TESSERA_FOLDERS ${name})
    set(TESSERA_USES_${name} ${words})
    foreach(used IN LISTS words)
      list(APPEND TESSERA_USES_${name} ${TESSERA_USES_${used}})
    endforeach()
    list(REMOVE_DUPLICATES TESSERA_USES_${name})
  else()
    list(POP_FRONT words target)
    foreach(home IN LISTS words)
      list(APPEND TESSERA_FOREIGN_${home} ${target})
    endforeach()
  endif()
endforeach()

# Links what layers.txt allows the folder NAME, as far as it exists.
function(tessera_link target scope name)
  foreach(used IN LISTS TESSERA_USES_${name})
    if(TARGET tessera_${used})
      target_link_libraries(${target} ${scope} tessera_${used})
    endif()
  endforeach()
  target_link_libraries(${target} ${scope} ${TESSERA_FOREIGN_any})
  if(NOT scope STREQUAL "INTERFACE")
    target_link_libraries(${target} PRIVATE ${TESSERA_FOREIGN_${name}} tessera_flags)
  endif()
endfunction()

# The folders whose code runs for long: evaluation, definitions and graphs of proofs, search, host
# operators. With -O1, which compiles a third faster, an interpreted model and a proof take half as
# long again, and with -O1 for ops, ir and rules alone the proofs of all rules a fifth; for the other
# folders, which run for milliseconds beside LLVM, no difference was measured.
set(hot_folders support runtime expr ops ir interp certify prove rules egraph superopt)

# tessera/NAME (or NAME at the root) as the library tessera_NAME. A folder that does not exist is
# passed over.
function(tessera_folder name)
  set(folder "${PROJECT_SOURCE_DIR}/tessera/${name}")
  if(NOT IS_DIRECTORY "${folder}")
    set(folder "${PROJECT_SOURCE_DIR}/${name}")
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${folder}/*.h")
  if(NOT sources AND NOT headers)
    return()
  endif()

  set(target tessera_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(precompiled tessera_precompiled)
    if(name STREQUAL "codegen")
      set(precompiled tessera_precompiled_llvm)
    endif()
    if(name IN_LIST hot_folders AND NOT TESSERA_SANITIZE)
      target_compile_options(${target} PRIVATE -O2)
      set(precompiled tessera_precompiled_hot)
    endif()
    # <elf.h>, which object.cpp includes, defines what LLVM's ELF.h declares.
    tessera_unity(${target} ${precompiled} object.cpp)
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                $<INSTALL_INTERFACE:include>)
  target_compile_features(${target} ${scope} cxx_std_20)
  tessera_link(${target} ${scope} ${name})
  set_property(GLOBAL APPEND PROPERTY TESSERA_LIBRARIES ${target})
  set_property(GLOBAL APPEND PROPERTY TESSERA_SOURCES ${sources})
  set_property(GLOBAL APPEND PROPERTY TESSERA_HEADERS ${headers})
endfunction()
