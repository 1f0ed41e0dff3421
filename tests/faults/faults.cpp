/// Preloaded into the binary (LD_PRELOAD), makes one system call or one allocation fail; what
/// tools/fault-injection drives.
///
///   TESSERA_FAULT=KIND:N         the N-th call of a kind fails: `io`, a system call on a file or
///   on
///                                memory; `large`, an allocation of 64 KiB and more; `small`, any
///                                other
///   TESSERA_FAULT_COUNTS=FILE    where the numbers of calls are written to at the end
///
/// Allocations are those of the program itself: the libraries that it is linked with, LLVM above
/// all, end the process where they have no memory.

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): of one process, before main
namespace {

enum Kind : int { kIo, kLarge, kSmall, kKinds };
constexpr const char* kNames[kKinds] = {"io", "large", "small"};
constexpr std::size_t kLargeBytes = 64 << 10;

std::atomic<long> calls[kKinds];
long fails_at[kKinds];  // 0: never
std::uintptr_t program_begin = 0, program_end = 0;
bool has_begun = false;

using Main = int(int, char**, char**);
Main* real_main = nullptr;
int counted_main(int count, char** arguments, char** environment) {
  has_begun = true;
  return real_main(count, arguments, environment);
}

/// Counts a call, and says whether it is the one that fails. Before main, nobody could say so.
bool fails(Kind kind) {
  return has_begun && ++calls[kind] == fails_at[kind];
}

/// Where the code of the program itself lies.
int find_program(dl_phdr_info* info, std::size_t, void*) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    program_begin = info->dlpi_addr + header.p_vaddr;
    program_end = program_begin + header.p_memsz;
  }
  return 1;  // the program comes first
}

[[gnu::constructor]] void begin() {
  dl_iterate_phdr(find_program, nullptr);
  const char* fault = std::getenv("TESSERA_FAULT");
  for (int kind = 0; fault != nullptr && kind < kKinds; ++kind) {
    const std::size_t length = std::strlen(kNames[kind]);
    if (std::strncmp(fault, kNames[kind], length) == 0 && fault[length] == ':')
      fails_at[kind] = std::atol(fault + length + 1);
  }
}

[[gnu::destructor]] void end() {
  const char* path = std::getenv("TESSERA_FAULT_COUNTS");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen(path, "w")) {
    for (int kind = 0; kind < kKinds; ++kind)
      std::fprintf(file, "%s %ld\n", kNames[kind], calls[kind].load());
    std::fclose(file);
  }
}

/// Whether the allocator takes memory for itself: who asked it for some counts, and not how it gets
/// it.
bool is_allocator(const void* caller) {
  Dl_info info = {};
  return has_begun && dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "jemalloc") != nullptr;
}

bool allocation_fails(std::size_t size, const void* caller) {
  const auto from = reinterpret_cast<std::uintptr_t>(caller);
  if (from < program_begin || from >= program_end) return false;
  return fails(size >= kLargeBytes ? kLarge : kSmall);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void* allocated(std::size_t size, std::size_t alignment, const void* caller) {
  if (allocation_fails(size, caller)) throw std::bad_alloc();
  const std::size_t padded = (size + alignment - 1) / alignment * alignment;
  void* memory = alignment > alignof(std::max_align_t) ? ::memalign(alignment, padded)
                                                       : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

void* operator new(std::size_t size) {
  return allocated(size, 1, __builtin_return_address(0));
}
void* operator new[](std::size_t size) {
  return allocated(size, 1, __builtin_return_address(0));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocated(size, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocated(size, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocation_fails(size, __builtin_return_address(0)) ? nullptr : std::malloc(size);
}

// The system calls, as glibc declares them.
extern "C" {

int __libc_start_main(Main* main, int count, char** arguments, void (*init)(), void (*fini)(),
                      void (*loader_fini)(), void* stack_end) {
  real_main = main;
  return next<decltype(__libc_start_main)>("__libc_start_main")(counted_main, count, arguments,
                                                                init, fini, loader_fini, stack_end);
}

void* calloc(std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  if (allocation_fails(bytes, __builtin_return_address(0))) return nullptr;
  // Not the next calloc: dlsym, which would find it, calls calloc itself.
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  return memory == nullptr ? nullptr : std::memset(memory, 0, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return allocation_fails(size, __builtin_return_address(0)) ? nullptr
                                                             : ::memalign(alignment, size);
}

int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const auto mode = va_arg(rest, mode_t);
  va_end(rest);
  if (fails(kIo)) return errno = EMFILE, -1;
  return next<int(const char*, int, ...)>("open")(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const auto mode = va_arg(rest, mode_t);
  va_end(rest);
  if (fails(kIo)) return errno = EMFILE, -1;
  return next<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
}

ssize_t read(int file, void* to, std::size_t size) {
  if (fails(kIo)) return errno = EIO, -1;
  return next<ssize_t(int, void*, std::size_t)>("read")(file, to, size);
}

ssize_t write(int file, const void* from, std::size_t size) {
  if (fails(kIo)) return errno = ENOSPC, -1;
  return next<ssize_t(int, const void*, std::size_t)>("write")(file, from, size);
}

int fsync(int file) {
  if (fails(kIo)) return errno = EIO, -1;
  return next<int(int)>("fsync")(file);
}

int ftruncate(int file, off_t size) noexcept {
  if (fails(kIo)) return errno = ENOSPC, -1;
  return next<int(int, off_t)>("ftruncate")(file, size);
}

int rename(const char* from, const char* to) noexcept {
  if (fails(kIo)) return errno = EIO, -1;
  return next<int(const char*, const char*)>("rename")(from, to);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  if (fails(kIo)) return errno = EIO, -1;
  return next<int(int, const char*, int, const char*)>("renameat")(from_folder, from, to_folder,
                                                                   to);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (fails(kIo)) return errno = EIO, -1;
  return next<int(int, const char*, int, const char*, int)>("linkat")(from_folder, from, to_folder,
                                                                      to, flags);
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (fails(kIo)) return errno = ENOSPC, -1;
  return next<int(const char*, mode_t)>("mkdir")(path, mode);
}

void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  if (!is_allocator(__builtin_return_address(0)) && fails(kIo)) return errno = ENOMEM, MAP_FAILED;
  return next<void*(void*, std::size_t, int, int, int, off_t)>("mmap")(at, size, protection, flags,
                                                                       file, offset);
}

int mprotect(void* at, std::size_t size, int protection) noexcept {
  if (fails(kIo)) return errno = ENOMEM, -1;
  return next<int(void*, std::size_t, int)>("mprotect")(at, size, protection);
}

}  // extern "C"
