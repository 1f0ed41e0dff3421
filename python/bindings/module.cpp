#include "python/bindings/bind.h"
#include "python/bindings/error.h"
#include "tessera/machine/machine.h"

namespace nb = nanobind;

NB_MODULE(_tessera, module) {
  nb::set_leak_warnings(false);  // other modules hold kernels until the process ends
  module.doc() = "Bindings of the Tessera compiler; import the package `tessera`.";
  module.attr("__version__") = TESSERA_VERSION;
  tessera::python::bind_errors(module);
  tessera::python::bind_models(module);
  tessera::python::bind_programs(module);
  tessera::python::bind_proofs(module);
  tessera::python::bind_kernels(module);
  tessera::python::bind_graphs(module);
  tessera::python::bind_triton(module);
  tessera::python::bind_versions(module);
  tessera::python::bind_graph_calls(module);
  module.def(
      "cores", [] { return tessera::machine::host().cores; },
      "Number of physical cores of this computer.");
}
