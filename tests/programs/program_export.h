#pragma once

#include <filesystem>

#include "tests/programs/random_program.h"

namespace tessera::testing {

/// Writes a program as a test of ONNX: model.onnx, and in test_data_set_0 its inputs and the
/// outputs of the interpreter, with tolerance_N.pb beside output_N.pb: how far each element may be
/// from it (f64; none: the output may be anything). A program that has no spelling in ONNX leaves
/// not_exported.txt instead.
Expected<Done> export_program(const RandomProgram& program, const std::filesystem::path& folder);

}  // namespace tessera::testing
