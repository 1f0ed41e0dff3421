# Installs BUILD into a fresh prefix inside it, then configures, builds and runs this project.

set(work "${BUILD}/install_test")
file(REMOVE_RECURSE "${work}")
if(SANITIZE)
  string(APPEND FLAGS " -fsanitize=${SANITIZE}")
endif()
function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${work}/prefix")
step("${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${work}/build"
     "-DCMAKE_PREFIX_PATH=${work}/prefix" "-DCMAKE_CXX_COMPILER=${COMPILER}"
     "-DCMAKE_CXX_FLAGS=${FLAGS}")
step("${CMAKE_COMMAND}" --build "${work}/build")
step("${work}/build/uses_tessera")
step("${work}/build/uses_engine")
step("${work}/build/uses_shared_library")
