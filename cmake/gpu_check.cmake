# gpu_check, which tools/gpu-bundle puts into its bundle. Given as CMAKE_PROJECT_tessera_INCLUDE, so
# that a build that does not ask for it knows nothing of it.

if(NOT TARGET tessera_codegen)
  # Again once the folders are targets; the name must be put in now.
  cmake_language(EVAL CODE "cmake_language(DEFER CALL include [[${CMAKE_CURRENT_LIST_FILE}]])")
  return()
endif()

add_executable(gpu_check "${PROJECT_SOURCE_DIR}/bench/gpu/gpu_check.cpp"
                         "${PROJECT_SOURCE_DIR}/bench/gpu/benches.cpp"
                         "${PROJECT_SOURCE_DIR}/bench/gpu/cases.cpp"
                         "${PROJECT_SOURCE_DIR}/bench/gpu/convolutions.cpp"
                         "${PROJECT_SOURCE_DIR}/bench/gpu/in_model.cpp"
                         "${PROJECT_SOURCE_DIR}/bench/gpu/result.cpp"
                         "${PROJECT_SOURCE_DIR}/bench/gpu/timing.cpp"
                         "${PROJECT_SOURCE_DIR}/bench/gpu/windows.cpp")
target_link_libraries(gpu_check PRIVATE tessera_program tessera_codegen tessera_runtime tessera_tile tessera_flags
                                        ${CMAKE_DL_LIBS})
