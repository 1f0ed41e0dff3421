# The libraries that decode images, where they are installed: the operator image_decoder says what is
# missing otherwise.

find_package(JPEG)
find_package(PNG)
foreach(library IN ITEMS JPEG PNG)
  string(TOLOWER ${library} name)
  add_library(tessera_${name} INTERFACE)
  if(${library}_FOUND)
    target_link_libraries(tessera_${name} INTERFACE ${library}::${library})
    target_compile_definitions(tessera_${name} INTERFACE TESSERA_${library})
  endif()
endforeach()
