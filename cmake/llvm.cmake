# tessera_llvm: LLVM 19 for codegen/. Shared by default; TESSERA_LLVM_STATIC links it into the binary.

set(TESSERA_LLVM_CONFIG "llvm-config-19" CACHE STRING "The llvm-config of LLVM 19")
find_program(tessera_llvm_config "${TESSERA_LLVM_CONFIG}" REQUIRED
             DOC "llvm-config of LLVM 19 (Debian: llvm-19-dev)")
execute_process(COMMAND "${tessera_llvm_config}" --includedir OUTPUT_VARIABLE llvm_include
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${tessera_llvm_config}" --libdir OUTPUT_VARIABLE llvm_libraries
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
add_library(tessera_llvm INTERFACE)
target_include_directories(tessera_llvm SYSTEM INTERFACE "$<BUILD_INTERFACE:${llvm_include}>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 takes the operators new and delete of llvm::GlobalVariable for a mismatch where it inlines one.
  target_compile_options(tessera_llvm INTERFACE -Wno-mismatched-new-delete)
endif()
if(TESSERA_LLVM_STATIC)
  execute_process(COMMAND "${tessera_llvm_config}" --link-static --libs orcjit passes aarch64 x86 nvptx
                  OUTPUT_VARIABLE llvm_static OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(llvm_static)
  target_link_directories(tessera_llvm INTERFACE "${llvm_libraries}")
  find_library(TESSERA_Z z REQUIRED)
  find_library(TESSERA_ZSTD zstd REQUIRED)
  target_link_libraries(tessera_llvm INTERFACE ${llvm_static} "${TESSERA_Z}" "${TESSERA_ZSTD}" pthread dl)
else()
  target_link_libraries(tessera_llvm INTERFACE "${llvm_libraries}/libLLVM.so")
endif()
set_property(GLOBAL APPEND PROPERTY TESSERA_LIBRARIES tessera_llvm)
# For codegen/, nearly all of whose sources and headers include these: parsing them takes two seconds.
tessera_precompile(tessera_precompiled_llvm LIBRARIES tessera_llvm HEADERS <llvm/IR/IRBuilder.h> <llvm/IR/Module.h>)
