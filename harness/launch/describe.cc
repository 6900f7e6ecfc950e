#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "harness/launch/active_run.h"
#include "harness/launch/launcher.h"
#include "harness/launch/private_file.h"
#include "harness/launch/run_folder.h"
#include "harness/process/spawn_client.h"
#include "harness/protocol/digest.h"
#include "harness/protocol/parse_json.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr int kSeconds = 10;
constexpr std::int64_t kOutputBytes = 16 << 20;
constexpr std::int64_t kDigestedBytes = 256 << 20;  // of one file; of a larger one its size, too

// The file that execvp would run; empty when there is none.
std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::stringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = folder + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

std::uint64_t DigestOfFile(const std::string& path, std::uint64_t seed) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return seed;
  struct stat status;
  std::uint64_t digest = seed;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    const auto size =
        static_cast<std::size_t>(std::min<std::int64_t>(status.st_size, kDigestedBytes));
    if (status.st_size > kDigestedBytes) digest = Digest(fmt::format("{}", status.st_size), digest);
    void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes != MAP_FAILED) {
      digest = Digest({static_cast<const char*>(bytes), size}, digest);
      munmap(bytes, size);
    }
  }
  close(fd);
  return digest;
}

// What a target may see of accelerators: a description made on another machine, or before a driver
// was there, must not be taken for today's.
std::string VisibleDevices() {
  std::string seen;
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"}) {
    const char* value = std::getenv(name);
    seen += std::string(name) + (value == nullptr ? "" : std::string("=") + value) + "\n";
  }
  std::vector<std::string> nodes;
  std::error_code error;
  for (const fs::directory_entry& node : fs::directory_iterator("/dev", error)) {
    const std::string name = node.path().filename();
    if (name.starts_with("nvidia") || name == "dxg") nodes.push_back(name);
  }
  std::sort(nodes.begin(), nodes.end());
  for (const std::string& name : nodes) seen += name + "\n";
  return seen + ReadFile("/proc/driver/nvidia/version").value_or("");
}

// A path as another copy of the same project has it: from the target's home, else the last name.
std::string PortableName(const std::string& path, const std::string& home) {
  const fs::path relative = fs::path(path).lexically_relative(home);
  if (home.empty() || relative.empty() || *relative.begin() == "..") {
    return fs::path(path).filename().string();
  }
  return relative.string();
}

// The digest of the program and of every argument that is a file (`python3 train.py`). The place of
// the program does not matter, nor does the folder that other files share with it.
std::uint64_t DigestOfCommand(const Target& target, std::uint64_t digest) {
  std::error_code ignored;
  for (std::size_t i = 0; i < target.command.size(); ++i) {
    const std::string& word = target.command[i];
    const bool is_path = fs::path(word).is_absolute() && fs::is_regular_file(word, ignored);
    if (i > 0) digest = Digest(is_path ? PortableName(word, target.home) : word, digest);
    // An absolute path stays what it is.
    const std::string file = i == 0 ? FindProgram(word) : word;
    digest = DigestOfFile((fs::path(target.folder) / file).string(), digest);
  }
  return digest;
}

// With the environment that it gets and the devices that it can see.
std::string CacheKey(const Target& target) {
  std::uint64_t digest = Digest(fmt::format("protocol {}", kProtocolVersion));
  for (const std::string& word : target.command) digest = Digest(word, digest);
  digest = DigestOfCommand(target, digest);
  for (const auto& [name, value] : target.environment) digest = Digest(name + "=" + value, digest);
  digest = Digest(VisibleDevices(), digest);
  return fmt::format("{:016x}", digest);
}

// Two files for the output of one call; they vanish with it.
struct OutputFiles {
  std::string out;
  std::string err;
  explicit OutputFiles(const std::string& folder) {
    const std::string base = fmt::format("{}/describe.{}", folder, getpid());
    out = base + ".out";
    err = base + ".err";
  }
  ~OutputFiles() {
    unlink(out.c_str());
    unlink(err.c_str());
  }
};

// What `TARGET --describe` prints; throws with what it said when it fails.
std::string AskTarget(const Target& target, const std::string& folder) {
  const std::string name = target.command.front();
  const OutputFiles files(folder);
  auto server = SpawnServerProcess::Fork();
  auto guard = server->OpenGuard();
  SpawnRequest request;
  request.command = target.command;
  request.command.push_back("--describe");
  request.folder = target.folder;
  request.environment = target.environment;
  request.stdout_path = files.out;
  request.stderr_path = files.err;
  request.file_bytes = kOutputBytes;
  guard->Send(ToJson(request));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kSeconds);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          deadline - std::chrono::steady_clock::now())
                          .count();
    if (left <= 0) {
      throw std::runtime_error(fmt::format("{} --describe took more than {} s", name, kSeconds));
    }
    pollfd polled{guard->fd(), POLLIN, 0};
    poll(&polled, 1, static_cast<int>(left));
    if (polled.revents == 0) continue;
    std::vector<Json> messages;
    const bool open = guard->Receive(messages);
    for (const Json& message : messages) {
      if (message.contains("error")) {
        throw std::runtime_error("cannot start the target: " + message["error"].get<std::string>());
      }
      if (!message.contains("exited")) continue;
      const int code = message["code"].get<int>();
      const int signal = message["signal"].get<int>();
      if (code == 0 && signal == 0) return ReadFile(files.out).value_or("");
      const std::string words = LastWords(files.err, 0);
      throw std::runtime_error(fmt::format("{} --describe {}{}{}", name, DescribeExit(code, signal),
                                           words.empty() ? "" : ": ", words));
    }
    if (!open) throw std::runtime_error("the process that guards --describe ended unexpectedly");
  }
}

std::optional<TargetDescription> DescriptionIn(const std::string& text) {
  try {
    if (!text.empty()) return DescriptionFromJson(ParseJson(text));
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

}  // namespace

std::string DigestOfTarget(const Target& target) {
  std::uint64_t digest = DigestOfCommand(target, Digest("target"));
  std::set<std::pair<std::string, std::string>> files;  // portable name, path
  for (const std::string& file : target.files) {
    files.emplace(PortableName(file, target.home), file);
  }
  for (const auto& [name, file] : files) digest = DigestOfFile(file, Digest(name, digest));
  return fmt::format("{:016x}", digest);
}

TargetDescription Describe(const Target& target, const std::string& cache_dir) {
  if (target.command.empty()) throw std::runtime_error("a target without a command");
  fs::create_directories(cache_dir);
  const std::string cached = cache_dir + "/" + CacheKey(target) + ".json";
  std::optional<TargetDescription> description = DescriptionIn(ReadOwnFile(cached));
  if (!description) {  // none yet, damaged, or a stranger's
    const std::string text = AskTarget(target, cache_dir);
    try {
      description = DescriptionFromJson(ParseJson(text));
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{} --describe printed no description: {}",
                                           target.command.front(), error.what()));
    }
    // Renamed into place, so that nobody reads a half; a cache that cannot be written is no
    // failure.
    const std::string fresh = fmt::format("{}.{}", cached, getpid());
    try {
      WriteFile(fresh, text);
      fs::rename(fresh, cached);
    } catch (const std::exception&) {
      unlink(fresh.c_str());
    }
  }
  AddHarnessVocabulary(*description);
  return *std::move(description);
}

}  // namespace trainwreck
