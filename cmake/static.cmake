# TESSERA_STATIC: every library but those of the C and C++ runtime, and protobuf, is linked statically, for
# binaries that travel (wheels, libtessera.so). Included before any library is searched for.

option(TESSERA_STATIC "Link libraries statically, for binaries that travel" OFF)
option(TESSERA_LLVM_STATIC "Link LLVM statically" ${TESSERA_STATIC})
# Shared in every build, and carried along: Debian's static library holds a thread-local variable at a fixed
# place (initial-exec), for which a process that loads modules late may have no room.
find_package(Protobuf REQUIRED)
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
