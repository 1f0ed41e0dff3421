# cmake --install: libraries, headers, the binary, and what find_package(tessera) needs.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY TESSERA_LIBRARIES)
list(REMOVE_ITEM libraries tessera_cli)

# tessera::tessera for users: every folder of the library.
add_library(tessera_all INTERFACE)
set_target_properties(tessera_all PROPERTIES EXPORT_NAME tessera)
target_link_libraries(tessera_all INTERFACE ${libraries})
add_library(tessera::tessera ALIAS tessera_all)

# tessera::engine for those who run saved programs: it needs neither LLVM nor protobuf.
if(TARGET tessera_engine)
  set_target_properties(tessera_engine PROPERTIES EXPORT_NAME engine)
  add_library(tessera::engine ALIAS tessera_engine)
endif()

install(TARGETS tessera_all tessera_shared tessera_flags tessera_jpeg tessera_png ${libraries}
        EXPORT tesseraTargets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/tessera" TYPE INCLUDE FILES_MATCHING PATTERN "*.h"
        PATTERN "*.def")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/rules" "${PROJECT_SOURCE_DIR}/sets" DESTINATION "${CMAKE_INSTALL_DATADIR}/tessera")
if(TARGET tessera)
  install(TARGETS tessera)
endif()

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/tessera")
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION "${package}")
configure_package_config_file(cmake/tesseraConfig.cmake.in tesseraConfig.cmake
                              INSTALL_DESTINATION "${package}")
write_basic_package_version_file(tesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tesseraConfig.cmake"
              "${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake" DESTINATION "${package}")
