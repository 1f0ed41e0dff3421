#include "tessera/ops/composite.h"

namespace tessera::define {

OpDef dynamic_quantize_linear() {
  return {.name = "dynamic_quantize_linear",
          .summary =
              "x as u8 = saturate(round(x / scale) + zero_point), whose range is that of x and 0",
          .inputs = {"x"},
          .outputs = {"out", "scale", "zero_point"},
          .expand = [](Body& b, const Attrs&, const Vals& in) -> Expected<Vals> {
            const Val& x = in[0];
            if (x.dtype() != DType::F32)
              return bad_operands(fmt::format("x is of type {}", to_string(x.dtype())),
                                  "it has to be f32");
            const Val zero = b.number(0, DType::F32), most = b.number(255, DType::F32);
            const Attrs whole{{"keepdims", 0}};
            const Val high = b.op("max", {b.op("reduce_max", {x}, whole), zero});
            const Val low = b.op("min", {b.op("reduce_min", {x}, whole), zero});
            // An all-zero tensor may use any scale.
            const Val flat = b.op("equal", {high, low});
            const Val scale = b.op("where", {flat, b.number(1, DType::F32), high - low}) / most;
            const auto kept = [&](const Val& value) { return b.op("clip", {value, zero, most}); };
            const Val zero_point = b.op("round", {kept(-low / scale)});
            const Val y = kept(b.op("round", {x / scale}) + zero_point);
            return Vals{converted(y, DType::U8), scale, converted(zero_point, DType::U8)};
          }};
}

}  // namespace tessera::define
