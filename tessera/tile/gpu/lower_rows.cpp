#include <algorithm>

#include "tessera/tile/gpu/accumulation.h"
#include "tessera/tile/gpu/block_lowering.h"

// Programs of rows: in two versions, persistent, or in several passes over the parts of a row.

namespace tessera::tile::gpu {

/// Scalars that depend on the program, or those that are uniform.
void BlockLowering::arithmetic(ProgramDependence by, std::set<OpId>& done) {
  for (const OpId id : kernel_.body.ops) {
    const Operation& op = operation(id);
    if (op.out.size() != 1) continue;
    const auto found = dependences_.find(op.out[0]);
    if (found == dependences_.end() || found->second != by) continue;
    lower(id);
    done.insert(id);
  }
}

// Two versions of the code: for accesses that are aligned and in bounds, without branches, so that
// loads overlap; and the general one.
void BlockLowering::versions() {
  dependences_ = program_dependences(kernel_);
  std::set<OpId> done;
  arithmetic(ProgramDependence::Uniform, done);
  arithmetic(ProgramDependence::Varying, done);
  Versions made{.accesses = known_accesses(planned_, dependences_)};
  const auto version = [&] {
    return body_of([&] {
      open_scope();
      for (const OpId id : kernel_.body.ops)
        if (!error_ && !done.contains(id)) lower(id);
      close_scope();
      accesses_.clear();
      packed_.clear();
    });
  };
  const bool has_fast =
      std::ranges::any_of(made.accesses, [](const std::pair<OpId, KnownAccess>& access) {
        const std::vector<bool>& inside = access.second.inside;
        return access.second.constant || access.second.aligned() ||
               std::find(inside.begin(), inside.end(), true) != inside.end();
      });
  if (has_fast) {
    known_accesses_ = {made.accesses.begin(), made.accesses.end()};
    made.fast = version();
    known_accesses_.clear();
  } else {
    made.accesses.clear();
  }
  made.general = version();
  add(std::move(made));
}

void BlockLowering::prefetch_program(int ahead, bool is_prologue, bool is_first) {
  PrefetchProgram made{.ahead = ahead, .is_prologue = is_prologue};
  made.body = body_of([&] {
    std::set<OpId> done;
    arithmetic(ProgramDependence::Varying, done);
    for (const auto& [id, buffer] : prefetch_buffers_)
      if (!buffer.is_fixed || is_first) {
        address_of(id);
        add(PrefetchLoad{.op = id, .buffer = buffer});
      }
  });
  add(std::move(made));
}

// Persistent blocks: programs are unordered, so the loads of the next one may overlap with the
// current one, if they precede its stores.
void BlockLowering::persistent() {
  dependences_ = program_dependences(kernel_);
  for (const PrefetchedLoad& found : prefetched_loads(planned_, dependences_)) {
    PrefetchBuffer& buffer = prefetch_buffers_[found.load];
    buffer = {.slot = shared_room(found.bytes), .is_fixed = found.fixed};
    buffer.offset = shared_.reserve(buffer.slot * (buffer.is_fixed ? 1 : mapping_.prefetched));
  }
  std::set<OpId> done;
  arithmetic(ProgramDependence::Uniform, done);
  for (int i = 0; i < mapping_.prefetched; ++i) prefetch_program(i, true, i == 0);
  ProgramLoop loop;
  loop.body = body_of([&] {
    open_scope();
    shared_.use_scratch();
    add(WaitPrefetch{});
    std::set<OpId> varying;
    arithmetic(ProgramDependence::Varying, varying);
    for (const auto& [id, buffer] : prefetch_buffers_) {
      order(AccessOrder::of(planned_, id));
      if (buffer.is_fixed) continue;
      take_prefetched(id, buffer);
      done.insert(id);
    }
    prefetch_program(mapping_.prefetched, false, false);
    for (const OpId id : kernel_.body.ops)
      if (!error_ && !done.contains(id)) lower(id);
    close_scope();
    accesses_.clear();
  });
  add(std::move(loop));
}

void BlockLowering::passes() {
  dependences_ = program_dependences(kernel_);
  for (const auto& [id, known] : known_accesses(planned_, dependences_))
    if (known.constant) constants_.insert(id);
  const std::vector<RowPass> passes = row_passes(kernel_, *mapping_.cut);
  for (const OpId id : passes[0].before) lower(id);
  is_unordered_ = true;
  row_properties(passes);
  for (const RowAlignment alignment :
       {RowAlignment::Aligned, RowAlignment::Shifted, RowAlignment::Unknown})
    row_version(passes, alignment);
}

void BlockLowering::row_properties(const std::vector<RowPass>& passes) {
  RowProperties made{.reads_constants = !constants_.empty()};
  made.body = body_of([&] {
    std::set<OpId> seen;
    for (const RowPass& pass : passes) {
      for (const OpId id : pass.inside) {
        const Operation& op = operation(id);
        if (!seen.insert(id).second) continue;
        if (op.out.size() == 1 && type(op.out[0]).is_scalar() && op.code != Code::Reduce)
          lower(id);  // an address
        if (op.code == Code::Vload || op.code == Code::Vstore)
          add(CheckRow{.op = id, .run = run_of_access(id), .is_fixed = is_fixed(dependences_, op)});
      }
    }
  });
  add(std::move(made));
}

// Rows that only this program reads are cached in shared memory from their first pass on, as far as
// there is room: each thread reads the addresses that it wrote itself.
void BlockLowering::cache_rows(const RowPass& pass) {
  const CutRows& cut = *mapping_.cut;
  if (cache_) cache_->second.is_filled = true;
  for (const OpId id : pass.inside) {
    const Operation& op = operation(id);
    if (op.code != Code::Vload || cache_ || is_fixed(dependences_, op)) continue;
    const int width = byte_width(type(op.in[0]).dtype);
    const std::int64_t bytes = cut.part * width;
    const std::int64_t most = (cut.extent + kChunk / width - 1 + cut.part - 1) / cut.part;
    const std::int64_t parts = std::min(most, mapping_.cached_bytes / bytes);
    if (parts == 0) return;
    if (!cache_offset_) cache_offset_ = shared_.reserve(shared_room(parts * bytes));
    cache_ = {id, {.offset = *cache_offset_, .parts = parts, .is_whole = parts == most}};
  }
}

void BlockLowering::part_loop(const RowPass& pass, PartLoop loop, bool is_masked, bool is_in_turn) {
  loop.folds = pass.folds;
  loop.body = body_of([&] {
    open_scope();
    is_masked_ = is_masked;
    for (const OpId id : pass.inside) {
      if (error_) break;
      const Operation& op = operation(id);
      if (op.code == Code::Reduce) {
        const Layout layout = home(op.in[0]);
        require(op.in[0], layout);
        const bool fma = !is_masked && require_factors(op, layout);
        add(ReducePart{.op = id, .layout = layout, .is_masked = is_masked, .fma = fma});
        continue;
      }
      const bool in_turn = op.code == Code::Vstore && is_in_turn;
      if (in_turn) barrier();
      lower(id);
      if (in_turn) barrier();
    }
    close_scope();
    accesses_.clear();
    is_masked_ = false;
  });
  shared_.use_scratch();
  add(std::move(loop));
}

void BlockLowering::finish_parts(const RowPass& pass) {
  FinishParts made{.ops = pass.folds};
  for (const OpId id : pass.folds) {
    const Operation& op = operation(id);
    const ValueId in = op.in[0];
    made.operands.push_back({in, home(in)});
    const DType of = widens(op, dtype(in)) ? DType::F32 : dtype(in);
    open_reductions_.push_back({.op = id, .layout = home(in), .types = {of}});
  }
  add(std::move(made));
  finish_reductions();
}

void BlockLowering::row_version(const std::vector<RowPass>& passes, RowAlignment alignment) {
  const CutRows& cut = *mapping_.cut;
  const bool asks = alignment == RowAlignment::Unknown;
  RowVersion made{.alignment = alignment};
  made.body = body_of([&] {
    open_scope();
    cache_.reset();
    for (const RowPass& pass : passes) {
      if (error_) break;
      bool reads = false;
      if (&pass != &passes.front())
        for (const OpId id : pass.before) {
          lower(id);
          reads = reads || reads_memory(operation(id).code);
        }
      if (reads) barrier();  // before any thread stores there
      if (!pass.inside.empty()) {
        if (!asks) cache_rows(pass);
        PartAccesses accesses{.alignment = alignment, .is_middle = true, .constants = constants_};
        if (!asks) {
          known_accesses_ = known_accesses_of_parts(planned_, dependences_, pass, accesses);
          part_loop(pass, {.is_first = true, .is_middle = true}, false, false);
          accesses.is_middle = false;
          known_accesses_ = known_accesses_of_parts(planned_, dependences_, pass, accesses);
        }
        if (alignment != RowAlignment::Aligned || cut.extent % cut.part != 0)
          part_loop(pass, {.is_first = asks, .is_reversible = asks && pass.store.has_value()}, true,
                    asks);
        known_accesses_.clear();
        if (!pass.folds.empty()) finish_parts(pass);
      }
      if (!pass.after.empty()) barrier();
      for (const OpId id : pass.after) lower(id);
    }
    close_scope();
    accesses_.clear();
    cache_.reset();
  });
  add(std::move(made));
}

}  // namespace tessera::tile::gpu
