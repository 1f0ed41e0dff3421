/* What a user of the installed engine writes in C: opens a program and says what it takes. */
#include <stdio.h>
#include <string.h>

#include "tessera/engine/tessera.h"

int main(int argc, char** argv) {
  tessera_program* program = NULL;
  size_t i;
  if (tessera_open(argc > 1 ? argv[1] : "no_such_file.tsr", &program)) {
    printf("%s\n", tessera_error());
    return argc > 1 || strstr(tessera_error(), "file-unreadable") == NULL;
  }
  for (i = 0; i < tessera_input_count(program); ++i) {
    tessera_value value;
    if (tessera_input(program, i, &value) == 0) printf("%s\n", value.name);
  }
  tessera_close(program);
  return 0;
}
