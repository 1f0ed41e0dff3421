#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "tessera/driver/model.h"

/// The parts of the module `tessera._tessera`, one source each.
namespace tessera::python {

/// A model as Python holds it: immutable, shared by the programs that are compiled from it.
struct ModelHandle {
  std::shared_ptr<const Model> model;
};

void bind_models(nanobind::module_& module);
void bind_programs(nanobind::module_& module);
void bind_proofs(nanobind::module_& module);
void bind_kernels(nanobind::module_& module);
void bind_graphs(nanobind::module_& module);
void bind_triton(nanobind::module_& module);
void bind_versions(nanobind::module_& module);
void bind_graph_calls(nanobind::module_& module);

}  // namespace tessera::python
