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
  TESSERA_TRY(CompiledModel made, compile_model(model_, shapes, compile_));
  TESSERA_TRY(Ready ready_to_run, ready(std::exchange(made.program, {}), run_));
  programs_.push_front({std::move(shapes), std::move(made), std::move(ready_to_run)});
  if (programs_.size() > kMostPrograms) programs_.pop_back();
  return &programs_.front();
}

Expected<std::vector<Datum>> NativeModel::run(std::span<const Datum> inputs) {
  TESSERA_TRY(Entry* const entry, program_for(inputs));
  return entry->ready.session->run(inputs);
}

}  // namespace tessera
