#include <fmt/format.h>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/functions.h"

namespace tessera::host {

Results bit_cast(const Call& call) {
  const Arguments in(call, "bit_cast");
  TESSERA_TRY(Tensor x, in.tensor(0));
  TESSERA_TRY(const DType to, in.dtype("to", x.dtype));
  if (x.dtype == DType::String || byte_width(to) != byte_width(x.dtype))
    return in.fault(
        fmt::format("{} does not have the width of {}", to_string(x.dtype), to_string(to)));
  x.dtype = to;  // the bytes are shared
  return in.results({std::move(x)});
}

}  // namespace tessera::host
