#include <fmt/format.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Transforms/Utils/Local.h>
#include <ucontext.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "tessera/codegen/ptx/block.h"
#include "tessera/codegen/ptx/instructions.h"
#include "tessera/support/half.h"
#include "tests/codegen/ptx_emulator.h"

namespace tessera::codegen {
namespace {

enum class Wait : std::uint8_t { None, Warp, Group, Block, Phase, Done };
constexpr std::size_t kWarp = 32, kGroup = 128;  // threads
constexpr unsigned kSlots = 320;                 // of the arguments of an instruction

struct Copy {
  char* to;
  const char* from;
  int bytes;
  std::size_t room = 16;  // the rest becomes 0
};

/// A barrier in shared memory. Copies that arrive at it are made when somebody waits for them.
struct Meeting {
  std::uint64_t expected = 0, arrived = 0, phase = 0;
  std::int64_t bytes = 0;  // that are still to come
  struct Late {
    std::vector<Copy> copies;
    std::int64_t bytes = 0;  // 0: a thread arrives
  };
  std::vector<Late> late = {};
};

/// As PtxKernel::maps: what the driver would encode.
struct Map {
  runtime::cuda::MapShape shape;
  std::uint64_t width = 2;
};

/// What a product reads of shared memory: nobody may write there until it is done.
struct Read {
  const char* at;
  std::vector<char> bytes;
};

/// A sum of a product that is not done: the register holds the number of its place (late_sum), a
/// NaN that spreads to all that reads it, until the product is waited for.
struct Late {
  float value = 0;
  std::size_t group = 0;  // groups that were committed before its own
};

/// One thread of a block.
struct Fiber {
  ucontext_t context = {};
  std::vector<char> stack = std::vector<char>(std::size_t{128} << 10);
  Wait wait = Wait::None;
  int operation = 0;
  std::uint64_t* arguments = nullptr;
  std::uint64_t* results = nullptr;
  std::deque<std::vector<Copy>> groups;
  std::vector<Copy> open;
  std::deque<std::vector<Read>> products;  // of a warpgroup's first thread
  std::vector<Read> reads;
  std::vector<Late> late;
  std::size_t committed = 0;  // groups of products
  bool has_awaited = false;   // the grids before this one
};

/// The last accesses of a byte of memory by threads of the block that runs.
struct LastAccesses {
  struct Access {
    int epoch = -1, warp_epoch = -1;
    std::size_t thread = 0;
  };
  Access write = {}, read = {}, other_read = {};
};
constexpr std::uint64_t kLine = 16;  // bytes whose accesses are found together

struct Machine {
  std::vector<std::string> names;  // of the operations
  std::vector<Fiber> fibers;
  ucontext_t scheduler = {};
  std::size_t current = 0;
  bool is_dependent = false;                                       // the grid before may still run
  std::vector<std::pair<std::uint64_t, std::uint64_t>> constants;  // memory that no grid writes
  std::vector<std::pair<std::uint64_t, std::uint64_t>> memory;     // that there is, by bounds
  bool eager = false;                         // copies happen as early as they may
  bool is_shared_block = false;               // warps run programs of their own
  std::map<std::uint64_t, Meeting> meetings;  // by address
  std::int64_t program[3] = {}, programs[3] = {};
  void (*kernel)(const std::uint64_t*) = nullptr;
  const std::uint64_t* words = nullptr;
  std::string problem;
  // Accesses of two threads are ordered if their epochs differ: a barrier was between them, of any
  // threads, or within a warp an instruction of all its lanes.
  int epoch = 0;
  std::vector<int> warp_epochs;
  std::unordered_map<std::uint64_t, std::array<LastAccesses, kLine>> accesses;  // by line
};

// The JIT's code calls back without an argument of ours.
Machine* machine = nullptr;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

template <class T>
T as(std::uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}
template <class T>
std::uint64_t word_of(T value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

float half_at(std::uint64_t word, int i) {
  return to_float(Half{static_cast<std::uint16_t>(word >> (16 * i))});
}
float bfloat_at(std::uint64_t word, int i) {
  return to_float(BFloat16{static_cast<std::uint16_t>(word >> (16 * i))});
}
int byte_at(std::uint64_t word, int i) {
  return static_cast<std::int8_t>(word >> (8 * i));
}

/// mma.m16n8: the fragments as PTX's manual draws them; `per` elements in a word.
template <class Sum, class Element>
void multiply(Fiber* lanes, int per, const Element& element) {
  const int k_count = 8 * per;
  std::vector<Sum> a(static_cast<std::size_t>(16 * k_count)),
      b(static_cast<std::size_t>(k_count * 8)), c(128);
  const auto each = [&](const auto& visit) {
    for (int lane = 0; lane < 32; ++lane) visit(lanes[lane], lane / 4, lane % 4);
  };
  each([&](Fiber& lane, int group, int member) {
    for (int word = 0; word < 4; ++word)
      for (int i = 0; i < per; ++i) {
        const int row = group + 8 * (word % 2), column = member * per + i + 4 * per * (word / 2);
        a[static_cast<std::size_t>(row * k_count + column)] = element(lane.arguments[word], i);
      }
    for (int word = 0; word < 2; ++word)
      for (int i = 0; i < per; ++i)
        b[static_cast<std::size_t>((member * per + i + 4 * per * word) * 8 + group)] =
            element(lane.arguments[4 + word], i);
    for (int i = 0; i < 4; ++i)
      c[static_cast<std::size_t>((group + 8 * (i / 2)) * 8 + member * 2 + i % 2)] =
          as<Sum>(lane.arguments[6 + i]);
  });
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column)
      for (int k = 0; k < k_count; ++k)
        c[static_cast<std::size_t>(row * 8 + column)] +=
            a[static_cast<std::size_t>(row * k_count + k)] *
            b[static_cast<std::size_t>(k * 8 + column)];
  each([&](Fiber& lane, int group, int member) {
    for (int i = 0; i < 4; ++i)
      lane.results[i] =
          word_of(c[static_cast<std::size_t>((group + 8 * (i / 2)) * 8 + member * 2 + i % 2)]);
  });
}

void load_matrices(Fiber* lanes, int count, bool turned) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int matrix = 0; matrix < count; ++matrix) {
      std::uint32_t word = 0;
      for (int i = 0; i < 2; ++i) {
        const int row = turned ? 2 * (lane % 4) + i : lane / 4;
        const int column = turned ? lane / 4 : 2 * (lane % 4) + i;
        const auto* from = as<const std::uint16_t*>(lanes[8 * matrix + row].arguments[0]);
        word |= std::uint32_t{from[column]} << (16 * i);
      }
      lanes[lane].results[matrix] = word;
    }
  }
}

constexpr std::uint32_t kLate = 0x7fa00000, kPlace = 0x1fffff;  // signalling NaNs

Late* late_sum(Fiber& fiber, std::uint64_t word) {
  const std::uint32_t place = as<std::uint32_t>(word) & kPlace;
  if ((as<std::uint32_t>(word) & ~kPlace) != kLate || place >= fiber.late.size()) return nullptr;
  return &fiber.late[place];
}

/// wgmma: d[64, n] += a[64, 16] · b[16, n], operands as their descriptors say.
void multiply64(Fiber* lanes, const std::string& name) {
  const int columns = std::stoi(name.substr(name.find(".mma.") + 5));
  const bool halves = name.find(".f16.") != std::string::npos;
  const bool in_registers = name.ends_with(".rs");
  const std::string turned = name.substr(name.size() - 5, 2);
  const int b_at = in_registers ? 4 : 2, sums_at = b_at + 2;
  const auto element = [&](std::uint64_t word, int i) {
    return halves ? half_at(word, i) : bfloat_at(word, i);
  };
  const auto in_shared = [&](int argument, bool rows_along_k, int across, int k) {
    const ptx::WgmmaDescriptor form =
        ptx::WgmmaDescriptor::of(lanes[0].arguments[static_cast<std::size_t>(argument) + 1]);
    const auto panel = static_cast<int>(form.panel);
    std::uint64_t at = lanes[0].arguments[argument] + static_cast<std::uint64_t>(form.offset);
    if (rows_along_k) {
      at += static_cast<std::uint64_t>(across * 2 % panel + across * 2 / panel * form.leading +
                                       k % 8 * panel + k / 8 * form.stride);
    } else {
      at += static_cast<std::uint64_t>(across % 8 * panel + across / 8 * form.stride + k * 2);
    }
    at ^= (at >> 7 & static_cast<std::uint64_t>(panel / 16 - 1)) << 4;
    const auto* from = as<const char*>(at);
    lanes[0].reads.push_back({from, {from, from + 2}});
    return element(*as<const std::uint16_t*>(at), 0);
  };
  std::vector<float> a(64 * 16), b(static_cast<std::size_t>(16 * columns));
  for (int k = 0; k < 16; ++k) {
    for (int m = 0; m < 64; ++m) {
      // Of a thread's four words: the row or eight below it, then the next eight of k.
      const int lane = m / 16 * 32 + m % 8 * 4 + k % 8 / 2, word = m / 8 % 2 + k / 8 * 2;
      a[static_cast<std::size_t>(m * 16 + k)] = in_registers
                                                    ? element(lanes[lane].arguments[word], k % 2)
                                                    : in_shared(0, turned[0] == '1', m, k);
    }
    for (int n = 0; n < columns; ++n)
      b[static_cast<std::size_t>(k * columns + n)] = in_shared(b_at, turned[1] == '1', n, k);
  }
  for (int lane = 0; lane < static_cast<int>(kGroup); ++lane) {
    for (int i = 0; i < columns / 2; ++i) {
      const int m = lane / 32 * 16 + lane % 32 / 4 + i / 2 % 2 * 8;
      const int n = i / 4 * 8 + lane % 4 * 2 + i % 2;
      Fiber& thread = lanes[lane];
      const std::uint64_t word = thread.arguments[sums_at + i];
      Late* sum = late_sum(thread, word);
      thread.results[i] = word;
      if (sum == nullptr) {
        thread.results[i] = kLate | thread.late.size();
        sum = &thread.late.emplace_back(Late{.value = as<float>(word)});
      }
      for (int k = 0; k < 16; ++k)
        sum->value +=
            a[static_cast<std::size_t>(m * 16 + k)] * b[static_cast<std::size_t>(k * columns + n)];
      sum->group = thread.committed;
    }
  }
}

/// What the threads of a warp do together.
void together(Fiber* lanes, const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("shfl.sync.idx")) {
    for (int lane = 0; lane < 32; ++lane)
      lanes[lane].results[0] =
          as<std::uint32_t>(lanes[lanes[lane].arguments[2] % kWarp].arguments[1]);
  } else if (has("shfl")) {
    for (int lane = 0; lane < 32; ++lane)
      lanes[lane].results[0] =
          as<std::uint32_t>(lanes[lane ^ static_cast<int>(lanes[lane].arguments[2])].arguments[1]);
  } else if (has("ldmatrix")) {
    load_matrices(lanes, has(".x4") ? 4 : 2, has(".trans"));
  } else if (has("bar.warp.sync")) {
  } else if (has("m16n8k16.row.col.f32")) {
    multiply<float>(lanes, 2, half_at);
  } else if (has("m16n8k16.row.col.bf16")) {
    multiply<float>(lanes, 2, bfloat_at);
  } else if (has("m16n8k8.row.col.tf32")) {
    multiply<float>(lanes, 1, [](std::uint64_t word, int) { return as<float>(word); });
  } else if (has("m16n8k32.row.col.s8")) {
    multiply<std::int32_t>(lanes, 4, byte_at);
  } else {
    machine->problem = "the emulator does not know " + name;
  }
}

/// Reports an access of global memory that the grid before may still write or read.
void check_awaited(const Fiber& fiber, std::uint64_t address) {
  if (fiber.has_awaited) return;
  const auto contains = [&](const auto& range) {
    return address >= range.first && address < range.second;
  };
  if (std::ranges::none_of(machine->constants, contains))
    machine->problem = "global memory is accessed before grids are awaited";
}

/// Whether an access of global memory is to an argument, or to a table. Reads may be of whole
/// chunks of 16 bytes, which unaligned vectors are combined from.
bool is_in_memory(std::uint64_t address, std::uint64_t bytes, bool writes) {
  constexpr std::uint64_t kChunk = 16;
  return std::ranges::any_of(machine->memory, [&](const auto& range) {
    const auto [begin, end] = range;
    if (writes) return address >= begin && address + bytes <= end;
    return address >= begin / kChunk * kChunk &&
           address + bytes <= (end + kChunk - 1) / kChunk * kChunk;
  });
}

void finish(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) {
    std::memset(copy.to, 0, copy.room);
    std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
  }
}

void begin_next_phase(Meeting& meeting) {
  if (meeting.arrived < meeting.expected || meeting.bytes != 0) return;
  meeting.arrived = 0;
  ++meeting.phase;
}

void arrive(Meeting& meeting) {
  if (meeting.expected == 0) machine->problem = "nobody made a barrier ready";
  ++meeting.arrived;
  begin_next_phase(meeting);
}

/// The box of a map at a place, element by element.
std::vector<Copy> box_at(const Map& map, std::uint64_t to, const std::uint64_t* place) {
  const std::vector<std::uint32_t>& box = map.shape.box;
  const std::uint64_t panel = box[0] * map.width;
  std::vector<Copy> copies;
  std::uint64_t count = 1;
  for (const std::uint32_t extent : box) count *= extent;
  for (std::uint64_t number = 0; number < count; ++number) {
    std::uint64_t rest = number, from = map.shape.base;
    bool inside = true;
    for (std::size_t axis = 0; axis < box.size(); ++axis) {
      const std::int64_t at =
          as<std::int32_t>(place[axis]) + static_cast<std::int64_t>(rest % box[axis]);
      rest /= box[axis];
      inside = inside && at >= 0 && at < static_cast<std::int64_t>(map.shape.extents[axis]);
      from +=
          static_cast<std::uint64_t>(at) * (axis == 0 ? map.width : map.shape.strides[axis - 1]);
    }
    if (inside && !is_in_memory(from, map.width, false)) {
      machine->problem = "a box is copied from outside of memory";
      return {};
    }
    std::uint64_t at = to + number * map.width;
    at ^= (at >> 7 & (panel / 16 - 1)) << 4;
    copies.push_back({as<char*>(at), as<const char*>(from),
                      inside ? static_cast<int>(map.width) : 0, map.width});
  }
  return copies;
}

/// Whether the phase of a parity is over.
bool is_over(std::uint64_t at, std::uint64_t parity) {
  Meeting& meeting = machine->meetings[at];
  const auto over = [&] { return (meeting.phase & 1) != parity; };
  if (over()) return true;
  for (const Meeting::Late& late : std::exchange(meeting.late, {})) {
    finish(late.copies);
    if (late.bytes == 0) {
      arrive(meeting);
    } else {
      meeting.bytes -= late.bytes;
      begin_next_phase(meeting);
    }
  }
  return over();
}

/// What a thread does alone; false: it waits for others.
bool alone(Fiber& fiber, const std::string& name, const std::uint64_t* arguments,
           std::uint64_t* results) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("sreg.tid.x")) {
    results[0] = machine->current;
  } else if (has("sreg.")) {
    const std::int64_t* of = has("nctaid") ? machine->programs : machine->program;
    results[0] = static_cast<std::uint64_t>(of[name.back() - 'x']);
  } else if (has("mbarrier.init")) {
    machine->meetings[arguments[0]] = {.expected = as<std::uint32_t>(arguments[1])};
  } else if (has("mbarrier.arrive.noinc")) {
    machine->meetings[arguments[0]].late.push_back({std::move(fiber.open)});
    fiber.open.clear();
  } else if (has("mbarrier.expect_more")) {
    machine->meetings[arguments[0]].bytes += as<std::int32_t>(arguments[1]);
  } else if (has("mbarrier.expect")) {
    Meeting& meeting = machine->meetings[arguments[0]];
    meeting.bytes += as<std::int32_t>(arguments[1]);
    arrive(meeting);
  } else if (has("map.copy")) {
    const Map& map = *as<const Map*>(arguments[1]);
    check_awaited(fiber, map.shape.base);
    const std::vector<Copy> copies = box_at(map, arguments[0], arguments + 3);
    if (machine->eager) finish(copies);
    const auto bytes = static_cast<std::int64_t>(copies.size() * map.width);
    machine->meetings[arguments[2]].late.push_back({copies, bytes});
  } else if (has("mbarrier.arrive") || has("mbarrier.release")) {
    arrive(machine->meetings[arguments[0]]);
  } else if (has("mbarrier.wait")) {
    return is_over(arguments[0], as<std::uint32_t>(arguments[1]));
  } else if (has("setmaxnreg")) {
  } else if (has("cp.async.cg")) {
    const int bytes = name.ends_with(".s") ? as<std::int32_t>(arguments[2]) : 16;
    if (bytes < 0 || bytes > 16 || arguments[0] % 16 != 0 || arguments[1] % 16 != 0)
      machine->problem = "a misaligned copy";
    if (bytes > 0) check_awaited(fiber, arguments[1]);
    if (bytes > 0 && !is_in_memory(arguments[1], as<std::uint32_t>(word_of(bytes)), false)) {
      machine->problem = "a chunk is copied from outside of memory";
      return true;
    }
    fiber.open.push_back({as<char*>(arguments[0]), as<const char*>(arguments[1]), bytes});
    if (machine->eager) finish(fiber.open);
  } else if (has("commit.group")) {
    fiber.groups.push_back(std::move(fiber.open));
    fiber.open.clear();
  } else if (has("wait.group")) {
    for (; fiber.groups.size() > as<std::uint32_t>(arguments[0]); fiber.groups.pop_front())
      finish(fiber.groups.front());
  } else if (has("f2tf32.rna")) {
    constexpr std::uint32_t kDropped = 13;  // bits; halves go away from zero
    const auto bits = as<std::uint32_t>(arguments[0]) + (1U << (kDropped - 1));
    results[0] = word_of(bits >> kDropped << kDropped);
  } else if (has("ex2.approx")) {
    results[0] = word_of(std::exp2(as<float>(arguments[0])));
  } else if (has("rsqrt.approx")) {
    results[0] = word_of(1 / std::sqrt(as<float>(arguments[0])));
  } else if (has("div.full")) {
    results[0] = word_of(as<float>(arguments[0]) / as<float>(arguments[1]));
  } else if (has("rcp.approx")) {
    results[0] = word_of(1.0F / as<float>(arguments[0]));
  } else if (has("ff2bf16x2.rn") || has("ff2f16x2.rn")) {
    const auto narrow = [&](int i) {
      const auto x = as<float>(arguments[i]);
      return std::uint64_t{has("ff2f16x2") ? to_half(x).bits : to_bfloat16(x).bits};
    };
    results[0] = narrow(0) << 16 | narrow(1);
  } else if (has("wgmma.commit")) {
    ++fiber.committed;
    fiber.products.push_back(std::move(fiber.reads));
    fiber.reads.clear();
  } else if (has("wgmma.wait")) {
    const std::size_t number = name.find("wait.") + 5, end = name.find('.', number);
    for (; fiber.products.size() > std::stoul(name.substr(number)); fiber.products.pop_front())
      for (const Read& read : fiber.products.front())
        if (!std::equal(read.bytes.begin(), read.bytes.end(), read.at))
          machine->problem = "an operand was overwritten before its product was done";
    const std::size_t pending = std::stoul(name.substr(number)),
                      count = end == std::string::npos ? 0 : std::stoul(name.substr(end + 1));
    for (std::size_t i = 0; i < count; ++i) {
      const Late* sum = late_sum(fiber, arguments[i]);
      if (sum != nullptr && sum->group + pending >= fiber.committed)
        machine->problem = "a sum is read before its product is done";
      results[i] = sum != nullptr ? word_of(sum->value) : arguments[i];
    }
  } else if (has("thread.pin")) {
    results[0] = arguments[0];
  } else if (has("wgmma.pin")) {
    std::copy_n(arguments, std::stoul(name.substr(name.find("pin.") + 4)), results);
  } else if (has("grid.await")) {
    fiber.has_awaited = true;
  } else if (has("membar") || has("fence") || has("grid.launch_dependents")) {
  } else {
    return false;
  }
  return true;
}

void enter(int operation, std::uint64_t* arguments, std::uint64_t* results) {
  Fiber& fiber = machine->fibers[machine->current];
  const std::string& name = machine->names[static_cast<std::size_t>(operation)];
  if (alone(fiber, name, arguments, results)) return;
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  fiber.wait = has("mbarrier.wait")       ? Wait::Phase
               : has("llvm.nvvm.barrier") ? Wait::Block
               : has("wgmma.mma")         ? Wait::Group
                                          : Wait::Warp;
  fiber.operation = operation;
  fiber.arguments = arguments;
  fiber.results = results;
  swapcontext(&fiber.context, &machine->scheduler);
}

/// Called before each load and store of global and shared memory: they are aligned, and two threads
/// that access a byte, one of them writing, must be ordered. Writes of the same byte by several
/// threads are not reported: they may write the same value.
void access(std::uint64_t address, std::uint32_t bytes, bool writes, bool is_global) {
  if (is_global) check_awaited(machine->fibers[machine->current], writes ? 0 : address);
  const bool is_misaligned = std::has_single_bit(bytes) && address % bytes != 0;
  if (is_misaligned || (is_global && !is_in_memory(address, bytes, writes))) {
    machine->problem =
        is_misaligned
            ? fmt::format("{} bytes at {:#x}: a misaligned access", bytes, address)
            : fmt::format("{} bytes are {} outside of memory", bytes, writes ? "written" : "read");
    machine->fibers[machine->current].wait = Wait::Done;  // the access itself could crash
    swapcontext(&machine->fibers[machine->current].context, &machine->scheduler);
  }
  const std::size_t thread = machine->current;
  const LastAccesses::Access now = {machine->epoch, machine->warp_epochs[thread / kWarp], thread};
  const auto races = [&](const LastAccesses::Access& earlier) {
    if (earlier.epoch != now.epoch || earlier.thread == thread) return false;
    // Accesses of different programs of the grid are ordered by their atomics alone.
    if (is_global && machine->is_shared_block && earlier.thread / kWarp != thread / kWarp)
      return false;
    return earlier.thread / kWarp != thread / kWarp || earlier.warp_epoch == now.warp_epoch;
  };
  auto* line = &machine->accesses[address / kLine];
  for (std::uint64_t at = address; at < address + bytes; ++at) {
    if (at % kLine == 0 && at != address) line = &machine->accesses[at / kLine];
    LastAccesses& last = (*line)[at % kLine];
    if (writes ? races(last.read) || races(last.other_read) : races(last.write)) {
      const LastAccesses::Access& earlier = !writes            ? last.write
                                            : races(last.read) ? last.read
                                                               : last.other_read;
      machine->problem =
          fmt::format("thread {} {} what thread {} {}, without a barrier between", thread,
                      writes ? "writes" : "reads", earlier.thread, writes ? "reads" : "writes");
      return;
    }
    if (writes) {
      last.write = now;
    } else {
      if (last.read.thread != thread) last.other_read = last.read;
      last.read = now;
    }
  }
}

void start() {
  machine->kernel(machine->words);
  machine->fibers[machine->current].wait = Wait::Done;
  swapcontext(&machine->fibers[machine->current].context, &machine->scheduler);
}

void resume(std::size_t thread) {
  machine->current = thread;
  Fiber& fiber = machine->fibers[thread];
  fiber.wait = Wait::None;
  swapcontext(&machine->scheduler, &fiber.context);
}

/// Runs a warp until all its threads wait for other warps, or are done.
void run_warp(std::size_t first) {
  Fiber* lanes = &machine->fibers[first];
  for (;;) {
    for (std::size_t lane = 0; lane < 32; ++lane)
      if (lanes[lane].wait == Wait::None) resume(first + lane);
    for (std::size_t lane = 1; lane < 32; ++lane)
      // Those that are done are not waited for, but where all must be.
      if ((lanes[lane].wait != lanes[0].wait &&
           (lanes[lane].wait != Wait::Done || lanes[0].wait != Wait::Phase)) ||
          (lanes[0].wait == Wait::Warp && lanes[lane].operation != lanes[0].operation))
        machine->problem = "threads of a warp wait for different things";
    if (lanes[0].wait != Wait::Warp || !machine->problem.empty()) return;
    together(lanes, machine->names[static_cast<std::size_t>(lanes[0].operation)]);
    for (std::size_t lane = 0; lane < 32; ++lane) lanes[lane].wait = Wait::None;
    ++machine->warp_epochs[first / kWarp];
  }
}

/// Runs the warps of a warpgroup, or of a block that is none, until some wait for other warps or
/// are done.
void run_group(std::size_t first, std::size_t count, bool backwards) {
  Fiber* lanes = &machine->fibers[first];
  const std::size_t warps = count / kWarp;
  while (machine->problem.empty()) {
    for (std::size_t i = 0; i < warps && machine->problem.empty(); ++i)
      run_warp(first + kWarp * (backwards ? warps - 1 - i : i));
    const auto waits = [&](std::size_t lane) { return lanes[lane].wait == Wait::Group; };
    std::size_t waiting = 0;
    for (std::size_t lane = 0; lane < count; lane += kWarp) waiting += waits(lane) ? 1 : 0;
    // The others wait for another warpgroup, and come later; or never.
    if (waiting < 4) return;
    multiply64(lanes, machine->names[static_cast<std::size_t>(lanes[0].operation)]);
    ++machine->epoch;
    for (std::size_t lane = 0; lane < count; ++lane) lanes[lane].wait = Wait::None;
  }
}

/// Lets those go on that have waited long enough: for a phase, or at a barrier where enough are.
bool any_goes_on() {
  const auto meet_at = [](const Fiber& fiber) -> std::pair<std::uint64_t, std::uint64_t> {
    const std::string& name = machine->names[static_cast<std::size_t>(fiber.operation)];
    if (name.ends_with("barrier0")) return {0, machine->fibers.size()};
    return {as<std::uint32_t>(fiber.arguments[0]), as<std::uint32_t>(fiber.arguments[1])};
  };
  std::map<std::uint64_t, std::uint64_t> waiting;  // by the number of the barrier
  for (const Fiber& fiber : machine->fibers)
    if (fiber.wait == Wait::Block) ++waiting[meet_at(fiber).first];
  bool any = false;
  for (Fiber& fiber : machine->fibers) {
    const bool met =
        fiber.wait == Wait::Block && waiting[meet_at(fiber).first] == meet_at(fiber).second;
    const bool over = fiber.wait == Wait::Phase &&
                      is_over(fiber.arguments[0], as<std::uint32_t>(fiber.arguments[1]));
    if (!met && !over) continue;
    fiber.wait = Wait::None;
    any = true;
  }
  ++machine->epoch;
  return any;
}

void run_block(bool backwards) {
  machine->eager = backwards;
  machine->meetings.clear();
  machine->accesses.clear();
  machine->warp_epochs.assign(machine->fibers.size() / kWarp, 0);
  for (Fiber& fiber : machine->fibers) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, start, 0);
    fiber.wait = Wait::None;
    fiber.groups.clear();
    fiber.open.clear();
    fiber.products.clear();
    fiber.reads.clear();
    fiber.late.clear();
    fiber.committed = 0;
    fiber.has_awaited = !machine->is_dependent;
  }
  const std::size_t threads = machine->fibers.size(), each = std::min(threads, kGroup);
  const std::size_t groups = threads / each;
  while (machine->problem.empty()) {
    for (std::size_t i = 0; i < groups && machine->problem.empty(); ++i)
      run_group(each * (backwards ? groups - 1 - i : i), each, backwards);
    if (std::all_of(machine->fibers.begin(), machine->fibers.end(),
                    [](const Fiber& fiber) { return fiber.wait == Wait::Done; }))
      return;
    if (!any_goes_on() && machine->problem.empty())
      machine->problem = "all threads of a block wait for each other, or for some that are done";
  }
}

/// Inserts calls of `access` before loads and stores of global and shared memory.
void report_accesses(llvm::Function& function) {
  llvm::Module& module = *function.getParent();
  llvm::IRBuilder<> ir(module.getContext());
  const llvm::FunctionCallee report =
      module.getOrInsertFunction("tessera_access", ir.getVoidTy(), ir.getInt64Ty(), ir.getInt32Ty(),
                                 ir.getInt1Ty(), ir.getInt1Ty());
  std::vector<llvm::Instruction*> found;
  for (llvm::Instruction& instruction : llvm::instructions(function))
    if (llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction)) found.push_back(&instruction);
  for (llvm::Instruction* instruction : found) {
    llvm::Value* pointer = llvm::getLoadStorePointerOperand(instruction);
    const unsigned space = pointer->getType()->getPointerAddressSpace();
    if (space != ptx::kGlobal && space != ptx::kShared) continue;
    ir.SetInsertPoint(instruction);
    const auto bytes = static_cast<std::uint32_t>(
        module.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(instruction)));
    ir.CreateCall(report, {ir.CreatePtrToInt(pointer, ir.getInt64Ty()), ir.getInt32(bytes),
                           ir.getInt1(llvm::isa<llvm::StoreInst>(instruction)),
                           ir.getInt1(space == ptx::kGlobal)});
  }
}

bool is_of_warpgroup(const llvm::Value& value, const char* what) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&value);
  return call != nullptr && call->getCalledFunction()->getName().contains(what);
}

/// What registers that a word is combined from are called: the word, its parts, and where those
/// come from.
void find_names(llvm::Value* word, llvm::SetVector<llvm::Instruction*>& names) {
  auto* instruction = llvm::dyn_cast<llvm::Instruction>(word);
  if (instruction == nullptr || !names.insert(instruction)) return;
  switch (instruction->getOpcode()) {
    case llvm::Instruction::BitCast:
    case llvm::Instruction::ExtractElement:
    case llvm::Instruction::InsertElement:
    case llvm::Instruction::LShr:
    case llvm::Instruction::Or:
    case llvm::Instruction::Shl:
    case llvm::Instruction::ShuffleVector:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::ZExt:
      for (llvm::Value* operand : instruction->operands()) find_names(operand, names);
      return;
    case llvm::Instruction::ExtractValue: {
      const auto* extract = llvm::cast<llvm::ExtractValueInst>(instruction);
      auto* call = llvm::cast<llvm::Instruction>(extract->getAggregateOperand());
      if (is_of_warpgroup(*call, "wgmma.pin"))
        find_names(call->getOperand(extract->getIndices()[0]), names);
      return;
    }
    default: return;
  }
}

/// Overwrites registers that products of warpgroups have read, for those that read them
/// afterwards: assemblers use them again (BlockLowering::ends_in_registers).
void lose_factors(llvm::Function& function) {
  std::vector<std::pair<llvm::Instruction*, llvm::Instruction*>> lost;  // and the end of the group
  for (llvm::BasicBlock& block : function) {
    llvm::SetVector<llvm::Instruction*> names;
    const auto is_read_by_others = [&](const llvm::Instruction* name) {
      return name->getParent() != &block ||
             llvm::any_of(name->users(), [&](const llvm::User* user) {
               return !is_of_warpgroup(*user, "wgmma.") &&
                      llvm::count(names, llvm::cast<llvm::Instruction>(user)) == 0;
             });
    };
    for (llvm::Instruction& instruction : block) {
      if (is_of_warpgroup(instruction, "wgmma.mma") &&
          llvm::cast<llvm::CallInst>(instruction).getCalledFunction()->getName().ends_with(".rs")) {
        constexpr unsigned kWords = 4;
        for (unsigned i = 0; i < kWords; ++i) find_names(instruction.getOperand(i), names);
      } else if (is_of_warpgroup(instruction, "wgmma.commit")) {
        for (llvm::Instruction* name : names)
          if (is_read_by_others(name)) lost.emplace_back(name, &instruction);
        names.clear();
      }
    }
  }
  std::map<llvm::Instruction*, llvm::AllocaInst*> places;
  for (const auto& [name, end] : lost) {
    llvm::AllocaInst*& place = places[name];
    if (place == nullptr) {
      auto* phi = llvm::dyn_cast<llvm::PHINode>(name);  // a phi is deleted
      place = phi != nullptr ? llvm::DemotePHIToStack(phi) : llvm::DemoteRegToStack(*name);
    }
    llvm::Type* type = place->getAllocatedType();
    llvm::IRBuilder<> ir(end->getNextNode());
    auto* ones = llvm::Constant::getAllOnesValue(
        ir.getIntNTy(static_cast<unsigned>(type->getPrimitiveSizeInBits())));
    ir.CreateStore(ir.CreateBitCast(ones, type), place);
  }
}

/// Replaces NVVM's intrinsics by calls of `enter`, and writes a function that is given the words.
void instrument(llvm::Module& module, const PtxKernel& kernel, std::vector<std::string>& names) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> ir(context);
  auto* pointer = ir.getPtrTy();
  const llvm::FunctionCallee enter_function = module.getOrInsertFunction(
      "tessera_enter", ir.getVoidTy(), ir.getInt32Ty(), pointer, pointer);
  llvm::Function* entry = module.getFunction(kernel.entry);
  lose_factors(*entry);
  std::vector<llvm::CallInst*> calls;
  for (llvm::Instruction& instruction : llvm::instructions(*entry))
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction))
      if (call->getCalledFunction()->getName().starts_with("llvm.nvvm.") ||
          call->getCalledFunction()->getName().starts_with(ptx::kSpecial))
        calls.push_back(call);
  report_accesses(*entry);
  auto* slots = llvm::ArrayType::get(ir.getInt64Ty(), kSlots);
  ir.SetInsertPoint(&entry->getEntryBlock().front());
  llvm::Value* arguments = ir.CreateAlloca(slots);
  llvm::Value* results = ir.CreateAlloca(slots);
  const auto slot = [&](llvm::Value* base, unsigned i) {
    return ir.CreateConstGEP2_32(slots, base, 0, i);
  };
  for (llvm::CallInst* call : calls) {
    const std::string name = call->getCalledFunction()->getName().str();
    auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) known = names.insert(names.end(), name);
    const auto id = static_cast<std::uint32_t>(known - names.begin());
    ir.SetInsertPoint(call);
    for (unsigned i = 0; i < call->arg_size(); ++i) {
      llvm::Value* argument = call->getArgOperand(i);
      if (argument->getType()->isPointerTy())
        argument = ir.CreatePtrToInt(argument, ir.getInt64Ty());
      ir.CreateStore(argument, slot(arguments, i));
    }
    ir.CreateCall(enter_function, {ir.getInt32(id), arguments, results});
    llvm::Type* type = call->getType();
    llvm::Value* result = nullptr;
    if (auto* many = llvm::dyn_cast<llvm::StructType>(type)) {
      result = llvm::PoisonValue::get(many);
      for (unsigned i = 0; i < many->getNumElements(); ++i)
        result = ir.CreateInsertValue(result,
                                      ir.CreateLoad(many->getElementType(i), slot(results, i)), i);
    } else if (!type->isVoidTy()) {
      result = ir.CreateLoad(type, slot(results, 0));
    }
    if (result != nullptr) call->replaceAllUsesWith(result);
    call->eraseFromParent();
  }

  auto* run = llvm::Function::Create(llvm::FunctionType::get(ir.getVoidTy(), {pointer}, false),
                                     llvm::GlobalValue::ExternalLinkage, "tessera_run", module);
  ir.SetInsertPoint(llvm::BasicBlock::Create(context, "", run));
  for (unsigned i = 0; i < entry->arg_size(); ++i)
    entry->removeParamAttr(i, llvm::Attribute::ByVal);
  std::vector<llvm::Value*> words;
  for (unsigned i = 0; i < entry->arg_size(); ++i)
    words.push_back(ir.CreateLoad(entry->getArg(i)->getType(),
                                  ir.CreateConstGEP1_32(ir.getInt64Ty(), run->getArg(0), i)));
  ir.CreateCall(entry, words);
  ir.CreateRetVoid();

  llvm::GlobalVariable* shared = module.getGlobalVariable("tessera_shared");
  auto* bytes =
      llvm::ArrayType::get(ir.getInt8Ty(), static_cast<std::uint64_t>(kernel.shared_bytes) + 128);
  auto* memory =
      new llvm::GlobalVariable(module, bytes, false, llvm::GlobalValue::InternalLinkage,
                               llvm::ConstantAggregateZero::get(bytes), "shared", nullptr,
                               llvm::GlobalValue::NotThreadLocal, shared->getAddressSpace());
  memory->setAlignment(llvm::Align(ptx::kSharedAlignment));
  shared->replaceAllUsesWith(memory);
  shared->eraseFromParent();
  module.getNamedMetadata("nvvm.annotations")->eraseFromParent();
}

/// Names and bytes of the tables of a module in global memory, which are never written; makes them
/// visible.
std::vector<std::pair<std::string, std::uint64_t>> global_tables(llvm::Module& module) {
  std::vector<std::pair<std::string, std::uint64_t>> tables;
  for (llvm::GlobalVariable& variable : module.globals()) {
    if (variable.getAddressSpace() != ptx::kGlobal) continue;
    variable.setLinkage(llvm::GlobalValue::ExternalLinkage);
    tables.emplace_back(variable.getName().str(),
                        module.getDataLayout().getTypeAllocSize(variable.getValueType()));
  }
  return tables;
}

/// Rounding to bf16 where the CPU has no instruction for it: g++ 12 comes without these functions
/// of the compiler's run-time library. A bf16 is returned as an f16 is, in a vector register.
_Float16 float_to_bf16(float x) {
  return std::bit_cast<_Float16>(to_bfloat16(x).bits);
}
_Float16 double_to_bf16(double x) {
  return std::bit_cast<_Float16>(to_bfloat16(static_cast<float>(x)).bits);
}

/// Bounds of the memory that an argument names: of a view, which may have negative strides, that of
/// its elements.
std::pair<std::uint64_t, std::uint64_t> bounds_of(const tile::Argument& argument) {
  std::int64_t low = 0, high = argument.bytes;
  if (argument.type.is_view()) {
    const std::int64_t width = byte_width(argument.type.dtype);
    high = width;
    for (std::size_t i = 0; i < argument.type.shape.size(); ++i) {
      const std::int64_t extent = argument.type.shape[i],
                         last = (extent - 1) * argument.type.strides[i] * width;
      if (extent == 0) return {};
      (last < 0 ? low : high) += last;
    }
  }
  high = std::max(high, argument.bytes);
  const auto at = reinterpret_cast<std::uint64_t>(argument.data);
  return {at + static_cast<std::uint64_t>(low), at + static_cast<std::uint64_t>(high)};
}

Diagnostic problem_of(llvm::Error error) {
  return Diagnostic{.id = "emulator", .message = llvm::toString(std::move(error))};
}

}  // namespace

Expected<Done> emulate(const tile::Kernel& kernel, std::span<const tile::Argument> arguments,
                       const tile::Grid& grid, const EmulatorOptions& options) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto context = std::make_unique<llvm::LLVMContext>();
  TESSERA_TRY(PtxModule made, ptx_module_of(kernel, *context, options.ptx));
  Machine state;
  instrument(*made.module, made.kernel, state.names);
  const auto tables = global_tables(*made.module);
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return problem_of(jit.takeError());
  made.module->setDataLayout((*jit)->getDataLayout());
  made.module->setTargetTriple((*jit)->getTargetTriple().str());
  llvm::orc::SymbolMap symbols;
  symbols[(*jit)->mangleAndIntern("tessera_enter")] = {llvm::orc::ExecutorAddr::fromPtr(&enter),
                                                       llvm::JITSymbolFlags::Exported};
  symbols[(*jit)->mangleAndIntern("tessera_access")] = {llvm::orc::ExecutorAddr::fromPtr(&access),
                                                        llvm::JITSymbolFlags::Exported};
  symbols[(*jit)->mangleAndIntern("__truncsfbf2")] = {
      llvm::orc::ExecutorAddr::fromPtr(&float_to_bf16), llvm::JITSymbolFlags::Exported};
  symbols[(*jit)->mangleAndIntern("__truncdfbf2")] = {
      llvm::orc::ExecutorAddr::fromPtr(&double_to_bf16), llvm::JITSymbolFlags::Exported};
  if (auto error = (*jit)->getMainJITDylib().define(llvm::orc::absoluteSymbols(symbols)))
    return problem_of(std::move(error));
  if (auto error = (*jit)->addIRModule({std::move(made.module), std::move(context)}))
    return problem_of(std::move(error));
  auto entry = (*jit)->lookup("tessera_run");
  if (!entry) return problem_of(entry.takeError());
  for (const auto& [name, bytes] : tables) {
    auto table = (*jit)->lookup(name);
    if (!table) return problem_of(table.takeError());
    state.constants.emplace_back(table->getValue(), table->getValue() + bytes);
    state.memory.push_back(state.constants.back());
  }
  for (const tile::Argument& argument : arguments)
    if (!argument.type.is_number()) state.memory.push_back(bounds_of(argument));

  std::vector<std::uint64_t> words = tile::words_of(arguments);
  words.push_back(static_cast<std::uint64_t>(grid[0]));  // read where blocks have several programs
  std::vector<Map> maps(made.kernel.maps.size());
  bool all = true;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const auto shape = shape_of(made.kernel.maps[i], words);
    all = all && shape;
    if (shape) maps[i].shape = *shape;
  }
  words.push_back(all ? 1 : 0);
  for (const Map& map : maps) words.push_back(word_of(&map));
  state.kernel = entry->toPtr<void (*)(const std::uint64_t*)>();
  state.words = words.data();
  state.fibers = std::vector<Fiber>(static_cast<std::size_t>(made.kernel.threads));
  state.is_dependent = options.ptx.programmatic_launch;
  state.is_shared_block = made.side_by_side > 1;
  for (std::size_t i = 0; i < options.ptx.constants.size(); ++i)
    if (options.ptx.constants[i]) {
      // With the rest of the chunks of 16 bytes that unaligned vectors are combined from.
      const auto begin = reinterpret_cast<std::uint64_t>(arguments[i].data);
      const std::uint64_t end = begin + static_cast<std::uint64_t>(arguments[i].bytes);
      state.constants.emplace_back(begin / 16 * 16, (end + 15) / 16 * 16);
    }
  machine = &state;
  std::copy(grid.begin(), grid.end(), state.programs);
  // Few blocks, where blocks go on with further programs.
  std::int64_t blocks = (grid[0] + made.kernel.programs - 1) / made.kernel.programs;
  if (made.kernel.persistent) state.programs[0] = blocks = std::min<std::int64_t>(blocks, 2);
  for (std::int64_t z = 0; z < grid[2]; ++z)
    for (std::int64_t y = 0; y < grid[1]; ++y)
      for (std::int64_t x = 0; x < blocks; ++x) {
        const std::int64_t at[3] = {x, y, z};
        std::copy(at, at + 3, state.program);
        run_block(options.backwards);
        if (!state.problem.empty()) return Diagnostic{.id = "emulator", .message = state.problem};
      }
  return Done{};
}

}  // namespace tessera::codegen
