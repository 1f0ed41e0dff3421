#include "tessera/driver/native_model.h"

#include <algorithm>

namespace tessera {

Expected<NativeModel::Entry*> NativeModel::program_for(std::span<const Datum> inputs) {
  InputShapes shapes = shapes_of(inputs);
  const auto found = std::ranges::find(programs_, shapes, &Entry::shapes);
  if (found != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, found);
    return &programs_.front();
  }
  TESSERA_TRY(CompiledModel compiled, compile_model(model_, shapes, compile_));
  TESSERA_TRY(RunnableProgram runnable, make_runnable(std::exchange(compiled.program, {}), run_));
  programs_.push_front({std::move(shapes), std::move(compiled), std::move(runnable)});
  if (programs_.size() > kMostPrograms) programs_.pop_back();
  return &programs_.front();
}

Expected<std::vector<Datum>> NativeModel::run(std::span<const Datum> inputs) {
  TESSERA_TRY(Entry* const entry, program_for(inputs));
  return entry->runnable.session->run(inputs);
}

}  // namespace tessera
