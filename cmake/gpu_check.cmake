# gpu_check, for TESSERA_GPU: what tools/gpu-bundle runs on a GPU.

add_executable(gpu_check "${PROJECT_SOURCE_DIR}/bench/gpu/gpu_check.cpp")
target_link_libraries(gpu_check PRIVATE tessera_codegen tessera_runtime tessera_tile tessera_flags
                                        ${CMAKE_DL_LIBS})
