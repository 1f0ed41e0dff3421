# tessera/report/page/* as a source of tessera_report. This file is also the script that writes the
# source: cmake -DPAGE=folder -DOUT=file -P report_page.cmake

# In the order in which the page has them.
set(page_html page.html)
set(page_css page.css)
set(page_js log.js elements.js summary.js graph.js rewrites.js time.js kernels.js memory.js
            tuning.js proof.js tabs.js)

if(CMAKE_SCRIPT_MODE_FILE)
  set(functions)
  foreach(kind html css js)
    set(text)
    foreach(name IN LISTS page_${kind})
      file(READ "${PAGE}/${name}" part)
      string(APPEND text "${part}")
    endforeach()
    # Several literals: compilers need not take those beyond 64 KiB.
    string(REPLACE "\n\n" "\n\n)page\"\n         R\"page(" text "${text}")
    string(APPEND functions
           "std::string_view page_${kind}() {\n  return R\"page(${text})page\";\n}\n\n")
  endforeach()
  file(WRITE "${OUT}" "// Made from the files of tessera/report/page/.\n\n\
#include \"tessera/report/page_sources.h\"\n\nnamespace tessera::report {\n\n${functions}\
}  // namespace tessera::report\n")
  return()
endif()

set(page_folder "${PROJECT_SOURCE_DIR}/tessera/report/page")
set(page_files ${page_html} ${page_css} ${page_js})
list(TRANSFORM page_files PREPEND "${page_folder}/")
set(out "${PROJECT_BINARY_DIR}/generated/report_page.cpp")
add_custom_command(
  OUTPUT "${out}"
  COMMAND "${CMAKE_COMMAND}" "-DPAGE=${page_folder}" "-DOUT=${out}" -P "${CMAKE_CURRENT_LIST_FILE}"
  DEPENDS ${page_files} "${CMAKE_CURRENT_LIST_FILE}"
  COMMENT "Building the report page in"
  VERBATIM)
target_sources(tessera_report PRIVATE "${out}")
