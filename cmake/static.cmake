# TESSERA_STATIC: libraries are linked statically, for binaries that travel (wheels, libtessera.so), but for those
# of the C and C++ runtime and tessera_carried, which travel along. Included before any library is searched for.

option(TESSERA_STATIC "Link libraries statically, for binaries that travel" OFF)
option(TESSERA_LLVM_STATIC "Link LLVM statically" ${TESSERA_STATIC})
# Shared in every build. Debian's static library of protobuf holds a thread-local variable at a fixed place
# (initial-exec), for which a process that loads modules late may have no room; those of JPEG and PNG are not
# position-independent on x86-64.
find_package(Protobuf REQUIRED)
find_package(JPEG)
find_package(PNG)
set(tessera_carried protobuf::libprotobuf-lite JPEG::JPEG PNG::PNG)
if(TESSERA_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()

# tessera_fmt: fmt. Debian has no static library of it: a static build compiles one. FMT_SHARED is what users of
# the shared library are compiled with, so that both builds have the same objects.
find_package(fmt 9 REQUIRED)
if(TESSERA_STATIC)
  add_library(tessera_fmt STATIC "${CMAKE_CURRENT_LIST_DIR}/fmt.cpp")
  target_compile_definitions(tessera_fmt PUBLIC FMT_SHARED)
  target_compile_features(tessera_fmt PUBLIC cxx_std_20)
else()
  add_library(tessera_fmt INTERFACE)
  target_link_libraries(tessera_fmt INTERFACE fmt::fmt)
endif()
set_property(GLOBAL APPEND PROPERTY TESSERA_LIBRARIES tessera_fmt)
