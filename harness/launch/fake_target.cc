// A target without a model, for tests of the harness: it trains nothing, writes a smooth loss, and
// behaves as the recipe key `fake.mode` says, from a model citizen to a process that hides from its
// killers.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "harness/launch/target_main.h"
#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"
#include "harness/protocol/trace.h"

namespace trainwreck {
namespace {

TargetDescription Description() {
  TargetDescription target;
  target.name = "fake";
  target.version = "1";
  auto key = [&](const std::string& name, ValueType type, Json value, const std::string& doc) {
    ParamInfo info;
    info.name = name;
    info.type = type;
    info.default_value = std::move(value);
    info.doc = doc;
    target.recipe.push_back(std::move(info));
  };
  key("fake.mode", ValueType::kString, "completes", "How the process behaves.");
  key("fake.at", ValueType::kInt, 3, "The step at which it misbehaves.");
  key("fake.rank", ValueType::kInt, 0, "The rank that misbehaves.");
  key("fake.attempts", ValueType::kInt, 1, "In how many attempts it misbehaves.");
  key("fake.step_ms", ValueType::kInt, 0, "Milliseconds of a step.");
  key("optimizer.lr", ValueType::kNumber, 0.1, "Scales the loss's descent.");
  target.recipe.back().role = "learning_rate";
  key("parallel.ranks", ValueType::kInt, 1, "Ranks.");
  key("steps", ValueType::kInt, 20, "Steps.");
  target.signals.push_back({"loss", "nats", Scale::kLog, false, false, false, "A smooth descent."});
  target.signals.push_back(
      {"time", "s", Scale::kLinear, false, false, false, "Seconds since the start."});
  target.events.push_back({"resumed", {"from_step"}, "Went on from a checkpoint."});
  target.events.push_back({"checkpoint_saved", {"steps_done"}, "Wrote a checkpoint."});
  target.features = {"device:cpu", "fork-server"};
  target.faults.push_back(
      {.name = "fake.slow_descent",
       .doc = "Slows the loss's descent.",
       .params = {{.name = "factor",
                   .default_value = 0.1,
                   .max = 1000,
                   .unit = "times",
                   .doc = "Of the rate."}},
       .amends = {{.key = "optimizer.lr", .op = Amendment::Op::kScale, .param = "factor"}},
       .has_trigger = false});
  target.faults.push_back({.name = "fake.misbehave",
                           .doc = "Sets the mode.",
                           .params = {{.name = "mode",
                                       .type = ValueType::kString,
                                       .default_value = nullptr,
                                       .doc = "As fake.mode."}},
                           .amends = {{.key = "fake.mode", .param = "mode"}},
                           .has_trigger = false});
  return target;
}

// A process that has left its rank's process group and session, whose parent is gone and that
// nothing but SIGKILL ends.
void Hide() {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      for (int number = 1; number < NSIG; ++number) signal(number, SIG_IGN);
      prctl(PR_SET_PDEATHSIG, 0);
      for (int fd = 0; fd < 64; ++fd) close(fd);
      for (;;) pause();
    }
    _exit(0);
  }
}

// One process at a time, each the child of the one before, which has ended: whoever looks finds
// another.
void Flicker() {
  if (fork() != 0) return;
  setsid();
  for (;;) {
    const pid_t child = fork();
    if (child > 0) _exit(0);
    usleep(200);
  }
}

// Writes `text` over and over until somebody stops it.
[[noreturn]] void Flood(int fd, const std::string& text) {
  std::string block;
  while (block.size() < (1 << 20)) block += text;
  for (;;) {
    if (write(fd, block.data(), block.size()) < 0) std::_Exit(9);
  }
}

void WriteBroadcast(TraceWriter& trace, int step) {
  trace.Write({{"t", "collective"},
               {"step", step},
               {"call", 2 * step},
               {"op", "broadcast"},
               {"shape", "[8]"},
               {"dtype", "int64"}});
}

class FakeRank {
 public:
  explicit FakeRank(Plan plan)
      : plan_(std::move(plan)),
        rank_(std::stoi(Variable("RANK", "0"))),
        folder_(Variable("TRAINWRECK_TRACE")),
        mode_(plan_.recipe.at("fake.mode").get<std::string>()) {}

  int Run();

 private:
  int Int(const char* key) const { return plan_.recipe.at(key).get<int>(); }
  std::string trace_path() const { return folder_ + "/rank" + std::to_string(rank_) + ".jsonl"; }
  std::optional<int> MisbehaveAtOnce();  // an exit code
  std::optional<int> MisbehaveAtStep(TraceWriter& trace, int step);
  std::optional<int> MisbehaveTogether(TraceWriter& trace, int step);  // all ranks do
  static int FailOnDevice(TraceWriter& trace, int step);
  static int FailAsPython(const char* error);

  Plan plan_;
  int rank_;
  std::string folder_;
  std::string mode_;
};

std::optional<int> FakeRank::MisbehaveAtOnce() {
  if (mode_ == "nothing") return 0;
  if (mode_ == "garbage") {
    std::ofstream(trace_path()) << "\x7f"
                                   "ELF\x01 this is no trace\n{\"t\":\"step\",\n[1,2]\n";
    return 0;
  }
  if (mode_ == "fifo") {  // opening it must not block the harness
    if (std::system(("mkfifo " + trace_path()).c_str()) != 0) return 1;
    return 0;
  }
  if (mode_.rfind("flood_", 0) == 0) {
    const int fd = mode_ == "flood_stdout"
                       ? 1
                       : open(trace_path().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (mode_ == "flood_line") Flood(fd, "x");
    if (mode_ == "flood_events") Flood(fd, "{\"t\":\"event\",\"event\":\"e\"}\n");
    Flood(fd, "{\"t\":\"step\",\"step\":1,\"loss\":1}\n");
  }
  if (mode_ == "ignores_sigterm" || mode_ == "hides_and_hangs") {
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) signal(number, SIG_IGN);
    if (mode_ == "hides_and_hangs") Hide();
    for (;;) pause();
  }
  if (mode_ == "exits_7") {
    std::fprintf(stderr, "first line\nsecond line\nthird line\nthe reason\n");
    return 7;
  }
  if (mode_ == "throws") throw std::runtime_error("out of cheese");
  if (mode_ == "sleeps") {
    for (;;) pause();
  }
  return std::nullopt;
}

std::optional<int> FakeRank::MisbehaveAtStep(TraceWriter& trace, int step) {
  if (mode_ == "crashes") std::abort();
  if (mode_ == "killed") raise(SIGKILL);
  if (mode_ == "stops") {
    std::ofstream(folder_ + "/nccl-rank" + std::to_string(rank_) + ".log")
        << "host:1:2 [0] NCCL WARN a peer is gone\n";
    raise(SIGSTOP);
  }
  if (mode_ == "hangs") {
    for (;;) pause();
  }
  if (mode_ == "spins") {
    for (volatile int i = 0;;) i = i + 1;
  }
  if (mode_ == "half_line") {
    const std::string half = R"({"t":"step","step":)" + std::to_string(step) + R"(,"lo)";
    if (write(trace.fd(), half.data(), half.size()) > 0) raise(SIGKILL);
  }
  if (mode_ == "hides") Hide();
  if (mode_ == "flickers") Flicker();
  if (mode_ == "fills_disk") {
    signal(SIGXFSZ, SIG_IGN);  // as Python does
    const int fd = open((plan_.checkpoint_dir + "/big").c_str(), O_WRONLY | O_CREAT, 0644);
    const std::string block(1 << 12, 'x');
    while (write(fd, block.data(), block.size()) > 0) {
    }
    std::perror("checkpoint");
    return 1;
  }
  if (mode_ == "quits_quietly") return 0;
  if (mode_ == "ends_early") {
    trace.Write({{"t", "end"}, {"why", "completed"}, {"step", step}});
    return 0;
  }
  if (mode_ == "device_assert") return FailOnDevice(trace, step);
  if (mode_ == "python_assert") return FailAsPython("device-side assert triggered");
  if (mode_ == "python_launch_failure") return FailAsPython("unspecified launch failure");
  if (mode_ == "loads_late") {  // behind its first collective
    WriteBroadcast(trace, step);
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  }
  if (mode_ == "mismatch") {
    WriteBroadcast(trace, step);
    for (;;) pause();
  }
  return std::nullopt;
}

void WriteKernelsWords() {
  for (int thread = 0; thread < 3; ++thread) {
    std::fprintf(
        stderr,
        "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1553: indexSelectSmallIndex: block: "
        "[0,0,0], thread: [%d,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n",
        thread);
  }
}

// As a program on a GPU: the error comes a stage later than its cause, unless launches block.
int FakeRank::FailOnDevice(TraceWriter& trace, int step) {
  const bool blocks = Variable("CUDA_LAUNCH_BLOCKING", "0") == "1";
  WriteKernelsWords();
  Json error = {
      {"t", "event"},
      {"event", "exception"},
      {"step", step},
      {"what", "CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA`"},
      {"stage", blocks ? "forward" : "backward"}};
  if (blocks) error.update({{"op", "aten::index_select"}, {"within", "aten::embedding"}});
  trace.Write(error);
  trace.Write({{"t", "end"}, {"why", "exception"}, {"step", step}});
  return 1;
}

// As a program in Python that knows nothing of the protocol; the text is that of PyTorch 2.11.
int FakeRank::FailAsPython(const char* error) {
  WriteKernelsWords();
  std::fprintf(stderr,
               "Traceback (most recent call last):\n"
               "  File \"train.py\", line 12, in <module>\n"
               "    loss.item()\n"
               "torch.AcceleratorError: CUDA error: %s\n"
               "Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/ for more "
               "information.\n"
               "CUDA kernel errors might be asynchronously reported at some other API call, so the "
               "stacktrace below might be incorrect.\n"
               "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
               "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\n",
               error);
  return 1;
}

std::optional<int> FakeRank::MisbehaveTogether(TraceWriter& trace, int step) {
  if (mode_ == "complains") {
    std::ofstream(folder_ + "/rank" + std::to_string(rank_) + ".calls")
        << Json({{"call", 2 * step},
                 {"step", step},
                 {"op", "all_reduce"},
                 {"shape", "[100]"},
                 {"dtype", "float32"},
                 {"began", 0.001 * step},
                 {"ended", nullptr}})
        << "\n";
    std::fprintf(stderr, "a part of another size\n");
    if (rank_ == Int("fake.rank")) std::abort();
    return 1;
  }
  if (mode_ == "refuses") {
    std::fprintf(stderr, "the replicas differ\n");
    return 1;
  }
  if (mode_ == "bad_plan") {
    trace.Write({{"t", "end"}, {"why", mode_}, {"step", step}});
    return 2;
  }
  return std::nullopt;
}

int FakeRank::Run() {
  if (const auto code = MisbehaveAtOnce()) return *code;
  TraceWriter trace(trace_path());
  const std::string saved = plan_.checkpoint_dir + "/done" + std::to_string(rank_);
  int begin = 0;
  trace.Write({{"t", "start"},
               {"rank", rank_},
               {"phase", plan_.phase},
               {"attempt", plan_.attempt},
               {"pid", getpid()},
               {"environment", {{"blas", Variable("FAKE_BLAS", "none")}}}});
  if (plan_.resume && std::ifstream(saved) >> begin) {
    trace.Write({{"t", "event"}, {"event", "resumed"}, {"step", begin}, {"from_step", begin}});
  }
  const int end = plan_.until.value_or(Int("steps"));
  const bool may_misbehave = rank_ == Int("fake.rank") && plan_.attempt < Int("fake.attempts");
  // A stack that is broken, or a machine that computes otherwise, as the environment says.
  const double rate = std::stod(Variable("FAKE_RATE", "1"));
  const double lr = rate * plan_.recipe.at("optimizer.lr").get<double>();
  for (int step = begin; step < end; ++step) {
    if (mode_ == "breaks" && may_misbehave && step == Int("fake.at")) {
      std::ofstream(plan_.checkpoint_dir + "/broken") << step;
      throw std::runtime_error("the cause");
    }
    if (plan_.recipe.contains("parallel.ranks") && Int("parallel.ranks") > 1 &&
        !(mode_ == "mismatch" && may_misbehave && step == Int("fake.at"))) {
      trace.Write({{"t", "collective"},
                   {"step", step},
                   {"call", 2 * step},
                   {"op", "all_reduce"},
                   {"shape", "[100]"},
                   {"dtype", "float32"}});
    }
    if (plan_.attempt < Int("fake.attempts") && step == Int("fake.at")) {
      if (const auto code = MisbehaveTogether(trace, step)) return *code;
    }
    if (may_misbehave && step == Int("fake.at")) {
      if (const auto code = MisbehaveAtStep(trace, step)) return *code;
    }
    if (mode_ == "breaks" && rank_ != Int("fake.rank") && step == Int("fake.at") &&
        plan_.attempt < Int("fake.attempts")) {
      while (access((plan_.checkpoint_dir + "/broken").c_str(), F_OK) != 0) usleep(500);
      throw std::runtime_error("connection closed by peer");
    }
    // Peers of a rank that is late wait for it, as in a collective.
    if (mode_ == "waits" && rank_ != Int("fake.rank") && step > Int("fake.at")) {
      for (;;) pause();
    }
    if (mode_ == "waits" && may_misbehave && step == Int("fake.at")) {
      for (;;) pause();
    }
    if (Int("fake.step_ms") > 0) usleep(1000 * Int("fake.step_ms"));
    double drift = mode_ == "drifts" ? 1e-9 * getpid() : 0.0;
    // Of five seeds in a row: each of -0.02, -0.01, 0, 0.01, 0.02 once.
    if (mode_ == "noisy") drift = 0.01 * (static_cast<double>(plan_.seed * 7 % 5) - 2);
    trace.Write({{"t", "step"},
                 {"step", step},
                 {"time", 0.001 * step},
                 {"loss", EncodeNumber(4.0 * std::exp(-lr * step) + drift)}});
  }
  std::ofstream(saved) << end;
  trace.Write(
      {{"t", "event"}, {"event", "checkpoint_saved"}, {"step", end - 1}, {"steps_done", end}});
  trace.Write({{"t", "end"}, {"why", "completed"}, {"step", end}});
  return 0;
}

}  // namespace
}  // namespace trainwreck

int main(int argc, char** argv) {
  return trainwreck::TargetMain(argc, argv, trainwreck::Description, [](trainwreck::Plan plan) {
    return trainwreck::FakeRank(std::move(plan)).Run();
  });
}
