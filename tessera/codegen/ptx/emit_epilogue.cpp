#include "tessera/codegen/ptx/emitter.h"
#include "tessera/codegen/ptx/erf_pattern.h"

// Epilogues: elementwise operations between a matmul and the one store of their result are not
// emitted as whole tiles but for a few registers at a time, where the store needs them:
// accumulators fill most of the registers, and a second tile would not fit beside them.

namespace tessera::codegen::ptx {

using tile::Code;

void Emitter::find_epilogues(const tile::Region& region) {
  struct Need {
    tile::OpId store = 0;
    int uses = 0;
    bool several = false;  // other stores, or uses outside of the epilogue
  };
  std::map<ValueId, Need> needs;
  const auto need = [&](ValueId id, tile::OpId store) {
    Need& found = needs.try_emplace(id, Need{.store = store}).first->second;
    ++found.uses;
    found.several = found.several || found.store != store;
  };
  for (std::size_t i = region.ops.size(); i-- > 0;) {
    const tile::OpId id = region.ops[i];
    const Operation& op = kernel_.ops[id];
    for (const tile::Region& inner : op.regions) find_epilogues(inner);
    if (!op.regions.empty()) needs.clear();  // registers that are live through a loop are expensive
    if (op.code == Code::Vstore) {
      need(op.in.back(), id);
      continue;
    }
    const bool by_elements = op.code == Code::Map || op.code == Code::Cast;
    if (!by_elements || !type(op.out[0]).is_tile() || !plan_.home(op.out[0])) continue;
    const auto found = needs.find(op.out[0]);
    if (found == needs.end() || found->second.several || found->second.uses != uses_[op.out[0]] ||
        home(op.out[0]) != home(kernel_.ops[found->second.store].in.back()))
      continue;
    epilogue_.insert(id);
    for (const ValueId in : op.in) need(in, found->second.store);
  }
}

bool Emitter::is_in_epilogue(ValueId id) const {
  return definitions_[id] && epilogue_.count(*definitions_[id]) != 0;
}

void Emitter::prepare(ValueId id, const Layout& layout) {
  if (!is_in_epilogue(id) || tiles_.count({id, layout}) != 0) {
    tile(id, layout);
  } else {
    const Operation& op = kernel_.ops[*definitions_[id]];
    for (const ValueId in : op.in) prepare(in, layout);
    const ErfPattern erf{kernel_, definitions_,
                         options_.precision};  // matches on the definitions of its operands
    if (const auto x = erf.plus_one(op)) prepare(x->of, layout);
    if (const auto found = erf.times_plus_one(op)) prepare(found->erf.of, layout);
  }
}

Pieces Emitter::part(ValueId id, const Layout& layout, const std::vector<std::size_t>& registers,
                     std::map<ValueId, Pieces>& known) {
  if (const auto found = known.find(id); found != known.end()) return found->second;
  Pieces some;
  if (is_in_epilogue(id) && tiles_.count({id, layout}) == 0) {
    some = computed(kernel_.ops[*definitions_[id]],
                    [&](ValueId in) { return part(in, layout, registers, known); });
  } else {
    const Pieces all = tile(id, layout);
    for (const std::size_t reg : registers) some.push_back(all[reg]);
  }
  return known[id] = some;
}

}  // namespace tessera::codegen::ptx
