#include "tessera/driver/onnx_runtime.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tessera/support/npy.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

/// Worker script: reads commands, answers each with a line of JSON. Its arguments are a JSON
/// object.
constexpr const char* kWorker = R"python(
import json, sys, time

def say(thing):
    print(json.dumps(thing), flush=True)

try:
    import numpy, onnxruntime
except ImportError as missing:
    say({"missing": str(missing)})
    sys.exit()

def clocked(session, feed):
    start = time.perf_counter()
    session.run(None, feed)
    return 1e3 * (time.perf_counter() - start)

def opened(given, level, spin):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.intra_op_num_threads = given["threads"]
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spin)))
    if given["bf16"]:
        options.add_session_config_entry("mlas.enable_gemm_fastmath_arm64_bfloat16", "1")
    return onnxruntime.InferenceSession(given["model"], options, ["CPUExecutionProvider"])

def fastest(given, feed):
    best = None
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_ALL"):
        for spin in (True, False) if given["threads"] > 1 else (False,):
            session = opened(given, level, spin)
            first = clocked(session, feed)
            runs = max(3, min(30, int(500 / first)))
            took = min(clocked(session, feed) for _ in range(runs))
            name = level.split("_")[-1].lower() + (" spinning" if spin else "")
            if best is None or took < best[0]:
                best = (took, name, session)
    return best[1:]

def main(given):
    feed = {name: numpy.load(f"{given['folder']}/input_{i}.npy")
            for i, name in enumerate(given["inputs"])}
    settings, session = fastest(given, feed)
    say({"version": onnxruntime.__version__, "settings": settings})
    for line in sys.stdin:
        command, number = line.split()
        if command == "time":
            say([clocked(session, feed) for _ in range(int(number))])
        else:
            outputs = session.run(None, feed)
            for i, output in enumerate(outputs):
                numpy.save(f"{given['folder']}/output_{i}.npy", output)
            say(len(outputs))

try:
    main(json.loads(sys.argv[1]))
except Exception as problem:
    say({"failed": str(problem)})
)python";

Diagnostic missing(const OnnxRuntimeOptions& options, const std::string& why) {
  return {.id = "peer-missing",
          .message = fmt::format("there is no ONNX Runtime for {}", options.python),
          .note = why,
          .help = "install it with: pip install onnxruntime; or name another Python with --python"};
}

Diagnostic failed(const std::string& why) {
  return {.id = "peer-failed", .message = "ONNX Runtime does not run the model", .note = why};
}

}  // namespace

Expected<std::unique_ptr<OnnxRuntimeProcess>> OnnxRuntimeProcess::start(
    const OnnxRuntimeOptions& options, std::span<const Tensor> inputs) {
  std::unique_ptr<OnnxRuntimeProcess> peer(new OnnxRuntimeProcess);
  std::string folder = (std::filesystem::temp_directory_path() / "tessera-peer-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return failed(std::strerror(errno));
  peer->folder_ = folder;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TESSERA_TRY_DONE(write_npy(peer->folder_ / fmt::format("input_{}.npy", i), inputs[i]));
  }
  const std::string given = Json{
      {"model", options.model.string()},
      {"folder", folder},
      {"inputs", options.input_names},
      {"threads", options.threads},
      {"bf16", options.bf16}}.dump();
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return failed(std::strerror(errno));
  }
  peer->socket_ = ends[0];
  peer->process_ = fork();
  if (peer->process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a stopped process would outlive us
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    dup2(ends[1], STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    const std::array<const char*, 5> arguments = {options.python.c_str(), "-c", kWorker,
                                                  given.c_str(), nullptr};
    execvp(arguments[0], const_cast<char* const*>(arguments.data()));
    _exit(127);
  }
  close(ends[1]);
  const auto hello = peer->answer();
  if (!hello) return missing(options, "it does not start");
  const Json object = Json::parse(*hello, nullptr, /*allow_exceptions=*/false);
  if (object.contains("missing")) return missing(options, object["missing"].get<std::string>());
  if (!object.contains("version")) return failed(object.value("failed", *hello));
  peer->version_ = object["version"];
  peer->settings_ = object["settings"];
  kill(peer->process_, SIGSTOP);
  return peer;
}

OnnxRuntimeProcess::~OnnxRuntimeProcess() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  if (socket_ >= 0) close(socket_);
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Expected<std::string> OnnxRuntimeProcess::answer() {
  while (true) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> part{};
    const ssize_t count = read(socket_, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return failed("it ended");
    unread_.append(part.data(), static_cast<std::size_t>(count));
  }
}

Expected<std::string> OnnxRuntimeProcess::ask(const std::string& what) {
  kill(process_, SIGCONT);
  if (send(socket_, what.data(), what.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(what.size())) {
    return failed("it ended");
  }
  auto line = answer();
  kill(process_, SIGSTOP);
  return line;
}

Expected<std::vector<double>> OnnxRuntimeProcess::time(int runs) {
  TESSERA_TRY(const std::string line, ask(fmt::format("time {}\n", runs)));
  const Json times = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!times.is_array()) return failed(line);
  return times.get<std::vector<double>>();
}

Expected<std::vector<Tensor>> OnnxRuntimeProcess::outputs() {
  TESSERA_TRY(const std::string line, ask("outputs 0\n"));
  const Json count = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!count.is_number_integer()) return failed(line);
  std::vector<Tensor> outputs;
  for (int i = 0; i < count.get<int>(); ++i) {
    TESSERA_TRY(Tensor output, read_npy(folder_ / fmt::format("output_{}.npy", i)));
    // Copies the outputs: the mapped file is overwritten by the next run.
    outputs.push_back({output.dtype, output.shape, Bytes::copy(output.bytes.view())});
  }
  return outputs;
}

}  // namespace tessera
