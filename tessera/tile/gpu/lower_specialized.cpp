#include "tessera/tile/gpu/block_lowering.h"

// Warp specialization of a kernel around one loop of matmuls: producer warps fill the multi-stage
// buffers, consumer warps compute everything else.

namespace tessera::tile::gpu {

void BlockLowering::consume_program() {
  const WarpSpecialization& specialization = *scheduled_.warp_specialization;
  std::set<OpId> done;
  const auto once = [&](OpId id) {
    if (!error_ && done.insert(id).second) lower(id);
  };
  for (const OpId id : kernel_.body.ops) {
    if (id == specialization.loop) {
      for (const WarpSpecialization::Early& early : specialization.early) {
        for (const OpId number : early.numbers) once(number);
        once(early.load);
      }
    }
    once(id);
  }
}

void BlockLowering::warp_specialized() {
  const WarpSpecialization& specialization = *scheduled_.warp_specialization;
  const ConsumerGroups groups = consumer_groups_of(plan_.threads());
  WarpTasks made;
  made.stages = {.pipeline = specialization.pipeline,
                 .offset = shared_.reserve(specialization.pipeline.bytes * mapping_.stages),
                 .count = mapping_.stages};
  made.barriers = shared_.reserve(kSharedAlignment);
  shared_.barrier();  // after the initialization of the mbarriers
  const auto needed = [&] {
    for (const OpId id : specialization.needed) lower(id);
  };
  made.producer = program_body([&] {
    needed();
    add(FillStages{});
  });
  if (groups.count > 1) made.skipped = body_of(needed);
  made.consumer = program_body([&] { consume_program(); });
  own_bytes_ = groups.count > 1 ? shared_.scratch_bytes() : 0;
  more_bytes_ = own_bytes_ * (groups.count - 1);
  made.own_bytes = own_bytes_;
  add(std::move(made));
}

}  // namespace tessera::tile::gpu
