#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tessera/support/expected.h"

namespace tessera::runtime::cuda {

// Declarations of the CUDA driver API, from its documentation: names and numbers only.
using Result = int;
using DeviceHandle = int;
using ContextHandle = struct CudaContext*;
using ModuleHandle = struct CudaModule*;
using FunctionHandle = struct CudaFunction*;
using StreamHandle = struct CudaStream*;
using EventHandle = struct CudaEvent*;
using GraphHandle = struct CudaGraph*;
using GraphRunHandle = struct CudaGraphExec*;
using LinkHandle = struct CudaLink*;
using PoolHandle = struct CudaPool*;
using Address = std::uint64_t;

enum DeviceAttribute : int {
  kMultiprocessors = 16,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kSharedBytesOfASm = 81,
  kSharedBytesOfABlock = 97,  // maximum, opt-in
  kReservedBytesOfABlock = 111,
  kHasPools = 115,
};
enum FunctionAttribute : int {
  kLocalBytes = 3,
  kRegisters = 4,
  kDynamicSharedBytes = 8,
};
enum JitOption : int {
  kErrorLog = 5,
  kErrorLogBytes = 6,
};
/// Properties of a memory pool (CUmemPoolProps); the rest is zero.
struct PoolProperties {
  int kind = 1;      // pinned
  int handles = 0;   // no sharing between processes
  int location = 1;  // device,
  int number = 0;    // its ordinal
  void* security = nullptr;
  std::size_t most_bytes = 0;  // no limit
  std::uint16_t usage = 0;
  std::array<unsigned char, 54> reserved = {};
};
enum PointerAttribute : int {
  kMemoryType = 2,
  kRangeStart = 11,
  kRangeBytes = 12,
};
constexpr unsigned kForAllContexts = 1;  // flag of lock_pages
constexpr unsigned kWithoutTime = 2;     // flag of make_event
constexpr int kKeptBytes = 4;            // pool attribute: release threshold in bytes
constexpr int kCaptureThisThread = 1, kCaptureRelaxed = 2;
constexpr int kLinkText = 1;  // PTX
/// Constants of encode_map.
constexpr int kMapOfBytes = 0, kMapOf16Bits = 1, kMapOf32Bits = 2, kMapOf128BytesAtOnce = 2;
/// Attribute of a launch (CUlaunchAttribute): an id and a value.
struct LaunchAttribute {
  int id = 0;
  int padding = 0;
  std::array<int, 16> value = {};
};
/// The launch may begin before the one before it in its stream is complete.
constexpr int kProgrammaticLaunch = 6;
/// Grid, block, stream and attributes of a launch (CUlaunchConfig).
struct LaunchConfig {
  std::array<unsigned, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  unsigned shared_bytes = 0;
  StreamHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
/// `extra` of launch: the parameters as one buffer.
constexpr std::uintptr_t kBufferPointer = 1, kBufferSize = 2, kBufferEnd = 0;

/// Function table of libcuda.so.1, resolved at run time.
struct Driver {
  Result (*init)(unsigned);
  Result (*driver_version)(int*);
  Result (*error_name)(Result, const char**);
  Result (*error_text)(Result, const char**);
  Result (*device_count)(int*);
  Result (*device)(DeviceHandle*, int);
  Result (*device_name)(char*, int, DeviceHandle);
  Result (*device_attribute)(int*, int, DeviceHandle);
  Result (*device_memory)(std::size_t*, DeviceHandle);
  Result (*retain_context)(ContextHandle*, DeviceHandle);
  Result (*release_context)(DeviceHandle);
  Result (*set_context)(ContextHandle);
  Result (*load_module)(ModuleHandle*, const void*, unsigned, int*, void**);
  Result (*unload_module)(ModuleHandle);
  Result (*function)(FunctionHandle*, ModuleHandle, const char*);
  Result (*function_attribute)(int*, int, FunctionHandle);
  Result (*set_function_attribute)(FunctionHandle, int, int);
  Result (*launch)(const LaunchConfig*, FunctionHandle, void**, void**);
  Result (*resident_blocks)(int*, FunctionHandle, int, std::size_t);
  /// Null before CUDA 12.
  Result (*encode_map)(void*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*,
                       const std::uint32_t*, const std::uint32_t*, int, int, int, int);
  Result (*allocate)(Address*, std::size_t);
  Result (*free)(Address);
  Result (*make_pool)(PoolHandle*, const PoolProperties*);
  Result (*destroy_pool)(PoolHandle);
  Result (*set_pool_attribute)(PoolHandle, int, void*);
  Result (*allocate_from)(Address*, std::size_t, PoolHandle, StreamHandle);
  Result (*free_in_order)(Address, StreamHandle);
  Result (*lock_pages)(void*, std::size_t, unsigned);
  Result (*unlock_pages)(void*);
  Result (*pointer_attributes)(unsigned, const int*, void**, Address);
  Result (*to_device)(Address, const void*, std::size_t);
  Result (*to_host)(void*, Address, std::size_t);
  Result (*copy)(Address, Address, std::size_t, StreamHandle);
  Result (*fill)(Address, unsigned char, std::size_t);
  Result (*send)(Address, const void*, std::size_t, StreamHandle);
  Result (*fetch)(void*, Address, std::size_t, StreamHandle);
  Result (*make_stream)(StreamHandle*, unsigned);
  Result (*destroy_stream)(StreamHandle);
  Result (*wait_stream)(StreamHandle);
  Result (*make_event)(EventHandle*, unsigned);
  Result (*destroy_event)(EventHandle);
  Result (*record_event)(EventHandle, StreamHandle);
  Result (*wait_event)(EventHandle);
  Result (*wait_in_stream)(StreamHandle, EventHandle, unsigned);
  Result (*elapsed)(float*, EventHandle, EventHandle);
  Result (*begin_capture)(StreamHandle, int);
  Result (*end_capture)(StreamHandle, GraphHandle*);
  Result (*is_capturing)(StreamHandle, int*);
  Result (*exchange_capture_mode)(int*);
  Result (*instantiate)(GraphRunHandle*, GraphHandle, unsigned long long);
  Result (*launch_graph)(GraphRunHandle, StreamHandle);
  Result (*destroy_graph)(GraphHandle);
  Result (*destroy_graph_run)(GraphRunHandle);
  Result (*make_link)(unsigned, int*, void**, LinkHandle*);
  Result (*add_to_link)(LinkHandle, int, void*, std::size_t, const char*, unsigned, int*, void**);
  Result (*complete_link)(LinkHandle, void**, std::size_t*);
  Result (*destroy_link)(LinkHandle);

  /// Loads the driver once. No driver, no GPU, or one that does not start: `cuda-missing`; a driver
  /// too old for the generated PTX: `cuda-driver`.
  static Expected<const Driver*> load();

  /// Turns an error code into a diagnostic, `cuda-error`: what was attempted, and the driver's
  /// description.
  Expected<Done> check(Result result, const char* what) const;
};

/// Whether a driver of a version in CUDA's encoding (12030 is CUDA 12.3) supports the PTX version
/// of kernels.
Expected<Done> check_version(int version);

}  // namespace tessera::runtime::cuda
