# tessera_onnx_schema: the C++ classes of the installed onnx.proto, included as "onnx.pb.h".

if(NOT IS_DIRECTORY "${PROJECT_SOURCE_DIR}/tessera/onnx")
  return()
endif()

find_path(TESSERA_ONNX_PROTO_DIR onnx.proto PATH_SUFFIXES onnx REQUIRED
          DOC "Folder of onnx.proto (Debian: libonnx-dev)")
set(generated "${PROJECT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${generated}")
add_custom_command(
  OUTPUT "${generated}/onnx.pb.cc" "${generated}/onnx.pb.h"
  COMMAND protobuf::protoc --cpp_out=${generated} --proto_path=${TESSERA_ONNX_PROTO_DIR} onnx.proto
  DEPENDS "${TESSERA_ONNX_PROTO_DIR}/onnx.proto"
  COMMENT "Compiling onnx.proto")
add_library(tessera_onnx_schema STATIC "${generated}/onnx.pb.cc" "${generated}/onnx.pb.h")
target_include_directories(tessera_onnx_schema SYSTEM PUBLIC $<BUILD_INTERFACE:${generated}>)
target_compile_features(tessera_onnx_schema PUBLIC cxx_std_20)
target_link_libraries(tessera_onnx_schema PUBLIC protobuf::libprotobuf-lite)
set_property(GLOBAL APPEND PROPERTY TESSERA_LIBRARIES tessera_onnx_schema)
