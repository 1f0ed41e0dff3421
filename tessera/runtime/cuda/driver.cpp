#include "tessera/runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

namespace tessera::runtime::cuda {
namespace {

Diagnostic missing(std::string message) {
  return Diagnostic{.id = "cuda-missing",
                    .message = std::move(message),
                    .note = "GPU kernels run where an NVIDIA GPU and its driver are installed"};
}

Expected<Driver> find_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return missing("the CUDA driver, libcuda.so.1, is not on this computer");
  Driver driver = {};
  std::string absent;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && absent.empty()) absent = name;
  };
  find(driver.init, "cuInit");
  find(driver.driver_version, "cuDriverGetVersion");
  find(driver.error_name, "cuGetErrorName");
  find(driver.error_text, "cuGetErrorString");
  find(driver.device_count, "cuDeviceGetCount");
  find(driver.device, "cuDeviceGet");
  find(driver.device_name, "cuDeviceGetName");
  find(driver.device_attribute, "cuDeviceGetAttribute");
  find(driver.device_memory, "cuDeviceTotalMem_v2");
  find(driver.retain_context, "cuDevicePrimaryCtxRetain");
  find(driver.release_context, "cuDevicePrimaryCtxRelease_v2");
  find(driver.set_context, "cuCtxSetCurrent");
  find(driver.load_module, "cuModuleLoadDataEx");
  find(driver.unload_module, "cuModuleUnload");
  find(driver.function, "cuModuleGetFunction");
  find(driver.function_attribute, "cuFuncGetAttribute");
  find(driver.set_function_attribute, "cuFuncSetAttribute");
  find(driver.launch, "cuLaunchKernelEx");
  find(driver.resident_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  find(driver.encode_map, "cuTensorMapEncodeTiled");
  find(driver.allocate, "cuMemAlloc_v2");
  find(driver.free, "cuMemFree_v2");
  find(driver.make_pool, "cuMemPoolCreate");
  find(driver.destroy_pool, "cuMemPoolDestroy");
  find(driver.set_pool_attribute, "cuMemPoolSetAttribute");
  find(driver.allocate_from, "cuMemAllocFromPoolAsync");
  find(driver.free_in_order, "cuMemFreeAsync");
  find(driver.lock_pages, "cuMemHostRegister_v2");
  find(driver.unlock_pages, "cuMemHostUnregister");
  find(driver.pointer_attributes, "cuPointerGetAttributes");
  find(driver.to_device, "cuMemcpyHtoD_v2");
  find(driver.to_host, "cuMemcpyDtoH_v2");
  find(driver.copy, "cuMemcpyDtoDAsync_v2");
  find(driver.fill, "cuMemsetD8_v2");
  find(driver.send, "cuMemcpyHtoDAsync_v2");
  find(driver.fetch, "cuMemcpyDtoHAsync_v2");
  find(driver.make_stream, "cuStreamCreate");
  find(driver.destroy_stream, "cuStreamDestroy_v2");
  find(driver.wait_stream, "cuStreamSynchronize");
  find(driver.make_event, "cuEventCreate");
  find(driver.destroy_event, "cuEventDestroy_v2");
  find(driver.record_event, "cuEventRecord");
  find(driver.wait_event, "cuEventSynchronize");
  find(driver.wait_in_stream, "cuStreamWaitEvent");
  find(driver.elapsed, "cuEventElapsedTime");
  find(driver.begin_capture, "cuStreamBeginCapture_v2");
  find(driver.end_capture, "cuStreamEndCapture");
  find(driver.is_capturing, "cuStreamIsCapturing");
  find(driver.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  find(driver.instantiate, "cuGraphInstantiateWithFlags");
  find(driver.launch_graph, "cuGraphLaunch");
  find(driver.destroy_graph, "cuGraphDestroy");
  find(driver.destroy_graph_run, "cuGraphExecDestroy");
  find(driver.make_link, "cuLinkCreate_v2");
  find(driver.add_to_link, "cuLinkAddData_v2");
  find(driver.complete_link, "cuLinkComplete");
  find(driver.destroy_link, "cuLinkDestroy");
  int version = 0;
  if (driver.driver_version != nullptr && driver.driver_version(&version) == 0)
    TESSERA_TRY_DONE(check_version(version));
  if (!absent.empty()) return missing(fmt::format("the CUDA driver has no {}", absent));
  int count = 0;
  if (driver.init(0) != 0 || driver.device_count(&count) != 0 || count == 0)
    return missing("the CUDA driver finds no GPU");
  return driver;
}

}  // namespace

Expected<Done> check_version(int version) {
  constexpr int kLeast = 12030;  // supports PTX 8.3
  if (version >= kLeast) return Done{};
  const auto named = [](int of) { return fmt::format("CUDA {}.{}", of / 1000, of % 1000 / 10); };
  return Diagnostic{.id = "cuda-driver",
                    .message = fmt::format("the driver is that of {}", named(version)),
                    .note = fmt::format("kernels are in the PTX of {}", named(kLeast)),
                    .help = "install a newer driver of the GPU"};
}

Expected<const Driver*> Driver::load() {
  static const Expected<Driver> driver = find_driver();
  if (!driver) return driver.error();
  return &*driver;
}

Expected<Done> Driver::check(Result result, const char* what) const {
  if (result == 0) return Done{};
  const char *name = nullptr, *text = nullptr;
  error_name(result, &name);
  error_text(result, &text);
  constexpr Result kNoMemory = 2;
  if (result == kNoMemory)
    return Diagnostic{.id = "cuda-memory",
                      .message = fmt::format("{}: the GPU has too little memory", what),
                      .help = "use smaller inputs, or end other programs on the GPU"};
  return Diagnostic{.id = "cuda-error",
                    .message = fmt::format("{}: {}", what, name == nullptr ? "an error" : name),
                    .note = text == nullptr ? "" : text};
}

}  // namespace tessera::runtime::cuda
