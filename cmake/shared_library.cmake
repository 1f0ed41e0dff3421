# libtessera.so: the engine with the C API of tessera/engine/tessera.h, for those who link neither C++ nor a
# compiler. Nothing but the functions of that header is visible.

file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/libtessera.cpp" CONTENT "")
add_library(tessera_shared SHARED "${PROJECT_BINARY_DIR}/generated/libtessera.cpp")
set_target_properties(tessera_shared PROPERTIES OUTPUT_NAME tessera EXPORT_NAME shared
                      LINK_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/shared_library.map")
target_include_directories(tessera_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                    $<INSTALL_INTERFACE:include>)
target_link_libraries(tessera_shared PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,tessera_engine>")
target_link_options(tessera_shared PRIVATE "-Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/shared_library.map"
                                           -Wl,--gc-sections)
if(NOT TESSERA_SANITIZE)  # clang leaves the sanitizers' functions to the program
  target_link_options(tessera_shared PRIVATE -Wl,--no-undefined)
endif()
if(TESSERA_STATIC)
  target_link_options(tessera_shared PRIVATE -static-libstdc++)
endif()
add_library(tessera::shared ALIAS tessera_shared)
