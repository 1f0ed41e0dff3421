#pragma once

#include "tessera/driver/inputs.h"
#include "tessera/driver/model.h"
#include "tessera/runtime/program.h"

namespace tessera {

/// Inputs and outputs of a program as a model without nodes, to make inputs for.
Model signature_model(const runtime::Program& program);

/// Generates or reads inputs of a program, as make_inputs of its signature does; integers that it
/// uses as indices are in range.
Expected<std::vector<Datum>> make_program_inputs(const runtime::Program& program,
                                                 InputOptions options);

}  // namespace tessera
