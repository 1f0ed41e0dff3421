#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectFileInterface.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <map>

#include "tessera/codegen/llvm/object.h"
#include "tessera/codegen/llvm/targets.h"

namespace tessera::codegen {
namespace {

namespace orc = llvm::orc;

Diagnostic cannot_load(const std::string& why) {
  return {.id = "object-unloadable",
          .message = fmt::format("the object code cannot be loaded: {}", why),
          .note = "the object was made for another machine, or it is damaged"};
}

/// First error on this thread: LLVM passes it to a reporter, and tells the caller only that there
/// is no result.
std::string& cause() {
  thread_local std::string cause;
  return cause;
}

void keep_cause(llvm::Error error) {
  std::string message = llvm::toString(std::move(error));
  if (cause().empty()) cause() = std::move(message);
}

Diagnostic cannot_load(llvm::Error error) {
  const std::string consequence = llvm::toString(std::move(error));
  return cannot_load(cause().empty() ? consequence : std::exchange(cause(), {}));
}

/// JIT linker of this process: created with the first image, never destroyed, because images may
/// live to the end.
orc::LLJIT& linker() {
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one per process
  static orc::LLJIT* const linker = [] {
    register_targets();
    // Runs on the calling thread: starting another one takes longer than linking a kernel.
    auto process = orc::SelfExecutorProcessControl::Create(
        nullptr, std::make_unique<orc::InPlaceTaskDispatcher>());
    TESSERA_CHECK(bool(process), "{}", llvm::toString(process.takeError()));
    // Nothing is compiled here, so CPU features do not matter; LLVM's detection of the host is slow
    // and may be wrong.
    auto made =
        orc::LLJITBuilder()
            .setExecutorProcessControl(std::move(*process))
            .setJITTargetMachineBuilder(
                orc::JITTargetMachineBuilder(llvm::Triple(llvm::sys::getProcessTriple())))
            .setPlatformSetUp(orc::setUpInactivePlatform)
            .setObjectLinkingLayerCreator([](orc::ExecutionSession& session, const llvm::Triple&) {
              return std::make_unique<orc::ObjectLinkingLayer>(session);
            })
            .create();
    TESSERA_CHECK(bool(made), "{}", llvm::toString(made.takeError()));
    (*made)->getExecutionSession().setErrorReporter(keep_cause);
    return made->release();
  }();
  return *linker;
}

class Linked : public LoadedObject {
 public:
  explicit Linked(orc::JITDylib& library) : library_(library) {}
  ~Linked() override {
    llvm::consumeError(linker().getExecutionSession().removeJITDylib(library_));
  }

  Expected<Done> link(std::span<const std::byte> object) {
    orc::ExecutionSession& session = linker().getExecutionSession();
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy(
        {reinterpret_cast<const char*>(object.data()), object.size()}, library_.getName());
    auto interface = orc::getObjectFileInterface(session, buffer->getMemBufferRef());
    if (!interface) return cannot_load(interface.takeError());
    const auto symbols = orc::SymbolLookupSet::fromMapKeys(interface->SymbolFlags);
    if (auto error = linker().addObjectFile(library_, std::move(buffer)))
      return cannot_load(std::move(error));
    auto found = session.lookup({{&library_, orc::JITDylibLookupFlags::MatchAllSymbols}}, symbols);
    if (!found) return cannot_load(found.takeError());
    for (const auto& [name, symbol] : *found)
      addresses_[(*name).str()] = symbol.getAddress().toPtr<void*>();
    return Done{};
  }

  void* address(const std::string& symbol) const override {
    const auto found = addresses_.find(symbol);
    TESSERA_CHECK(found != addresses_.end(), "the object has no function {}", symbol);
    return found->second;
  }

 private:
  orc::JITDylib& library_;
  std::map<std::string, void*> addresses_;
};

}  // namespace

Expected<std::shared_ptr<const LoadedObject>> LoadedObject::load(
    std::span<const std::byte> object) {
  static std::atomic<std::uint64_t> count = 0;
  cause().clear();
  auto library = linker().createJITDylib(fmt::format("kernel {}", count++));
  if (!library) return cannot_load(library.takeError());
  auto image = std::make_shared<Linked>(*library);
  TESSERA_TRY_DONE(image->link(object));
  return std::shared_ptr<const LoadedObject>(std::move(image));
}

}  // namespace tessera::codegen
