#include "trainer/checkpoints/checkpoint.h"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "harness/protocol/digest.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

constexpr std::string_view kMagic = "trainwreck-checkpoint 1 ";
constexpr std::size_t kDigestLength = 16;

const std::vector<std::pair<at::ScalarType, const char*>>& Dtypes() {
  static const std::vector<std::pair<at::ScalarType, const char*>> dtypes = {
      {at::kFloat, "float32"},
      {at::kDouble, "float64"},
      {at::kHalf, "float16"},
      {at::kBFloat16, "bfloat16"},
      {at::kLong, "int64"},
      {at::kInt, "int32"},
      {at::kShort, "int16"},
      {at::kChar, "int8"},
      {at::kByte, "uint8"},
      {at::kBool, "bool"},
      {at::kComplexFloat, "complex64"},
      {at::kComplexDouble, "complex128"},
  };
  return dtypes;
}

std::string NameOf(at::ScalarType dtype) {
  for (const auto& [type, name] : Dtypes()) {
    if (type == dtype) return name;
  }
  throw std::runtime_error(std::string("no checkpoint holds the type ") + c10::toString(dtype));
}

at::ScalarType DtypeOf(const std::string& name) {
  for (const auto& [type, known] : Dtypes()) {
    if (name == known) return type;
  }
  throw std::runtime_error("unknown dtype " + name);
}

[[noreturn]] void ThrowErrno(const std::string& doing) {
  throw std::runtime_error(doing + ": " + std::strerror(errno));
}

class File {
 public:
  File(const std::string& path, int flags) : path_(path), fd_(open(path.c_str(), flags, 0644)) {
    if (fd_ < 0) ThrowErrno("opening " + path_);
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) ThrowErrno("writing " + path_);
      bytes.remove_prefix(written);
    }
  }
  void Sync() {
    if (fsync(fd_) != 0) ThrowErrno("syncing " + path_);
  }
  std::string ReadUpTo(std::size_t bytes) {
    std::string text(bytes, '\0');
    std::size_t have = 0;
    while (have < bytes) {
      const ssize_t got = read(fd_, text.data() + have, bytes - have);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) ThrowErrno("reading " + path_);
      if (got == 0) break;
      have += got;
    }
    text.resize(have);
    return text;
  }
  std::int64_t size() const {
    struct stat status;
    if (fstat(fd_, &status) != 0) ThrowErrno("looking at " + path_);
    return status.st_size;
  }

 private:
  std::string path_;
  int fd_;
};

std::string_view BytesOf(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// The first line and the header that it speaks of. Leaves the file at the first byte of data.
Json ReadHeader(File& file) {
  std::string line;
  while (line.empty() || line.back() != '\n') {
    // Byte by byte: the line is short, and what follows belongs to the header.
    const std::string next = file.ReadUpTo(1);
    if (next.empty() || line.size() > 64) throw std::runtime_error("no checkpoint, or a torn one");
    line += next;
  }
  if (line.compare(0, kMagic.size(), kMagic) != 0 ||
      line.size() < kMagic.size() + kDigestLength + 3) {
    throw std::runtime_error("no checkpoint of this format");
  }
  const std::string digest = line.substr(kMagic.size(), kDigestLength);
  const std::string length = line.substr(kMagic.size() + kDigestLength);
  // Compared as text below, so that each byte of the line has one right value.
  const std::int64_t bytes = std::strtoll(length.c_str(), nullptr, 10);
  if (length != " " + std::to_string(bytes) + "\n" || bytes <= 0 || bytes > file.size()) {
    throw std::runtime_error("the length of the header is damaged");
  }
  const std::string header = file.ReadUpTo(bytes);
  if (DigestText(header) != digest) throw std::runtime_error("the header is damaged");
  const std::int64_t rest = file.size() - static_cast<std::int64_t>(line.size()) - bytes;
  Json json = Json::parse(header);
  if (json.at("data_bytes").get<std::int64_t>() != rest) {
    throw std::runtime_error("torn: " + std::to_string(rest) + " of " +
                             json.at("data_bytes").dump() + " data bytes");
  }
  return json;
}

StateDict ReadData(File& file, const Json& header) {
  StateDict state;
  for (const Json& entry : header.at("entries")) {
    const std::string name = entry.at("name");
    at::Tensor tensor = at::empty(entry.at("shape").get<std::vector<std::int64_t>>(),
                                  at::TensorOptions().dtype(DtypeOf(entry.at("dtype"))));
    const std::string bytes = file.ReadUpTo(tensor.nbytes());
    if (bytes.size() != tensor.nbytes() || DigestText(bytes) != entry.at("digest")) {
      throw std::runtime_error("entry " + name + " is damaged");
    }
    if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    state[name] = tensor;
  }
  return state;
}

void CheckOwner(const Json& header, int steps_done, int rank, int world_size) {
  if (header.at("steps_done") != steps_done || header.at("rank") != rank) {
    throw std::runtime_error("it belongs to step " + header.at("steps_done").dump() + " of rank " +
                             header.at("rank").dump());
  }
  if (header.at("world_size") != world_size) {
    throw std::runtime_error("it was saved by " + header.at("world_size").dump() +
                             " ranks and cannot be read by " + std::to_string(world_size));
  }
}

void SyncFolder(const std::string& dir) { File(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC).Sync(); }

}  // namespace

std::string CheckpointPath(const std::string& dir, int steps_done, int rank) {
  char name[64];
  std::snprintf(name, sizeof name, "step-%08d.rank%d.ckpt", steps_done, rank);
  return dir + "/" + name;
}

FileCheckpointStore::FileCheckpointStore(CheckpointOptions options) : options_(std::move(options)) {
  options_.keep = std::max(1, options_.keep);
  std::error_code error;
  std::filesystem::create_directories(options_.dir, error);
  if (error) {
    throw std::runtime_error("making the checkpoint folder " + options_.dir + ": " +
                             error.message());
  }
}

void FileCheckpointStore::Save(int steps_done, const StateDict& state) {
  Json header = {{"steps_done", steps_done},
                 {"rank", options_.rank},
                 {"world_size", options_.world_size},
                 {"writer", options_.writer},
                 {"entries", Json::array()}};
  std::vector<at::Tensor> tensors;
  std::int64_t offset = 0;
  for (const auto& [name, value] : state) {
    tensors.push_back(value.detach().cpu().contiguous());
    const at::Tensor& tensor = tensors.back();
    header["entries"].push_back({{"name", name},
                                 {"dtype", NameOf(tensor.scalar_type())},
                                 {"shape", tensor.sizes().vec()},
                                 {"offset", offset},
                                 {"bytes", tensor.nbytes()},
                                 {"digest", DigestText(BytesOf(tensor))}});
    offset += static_cast<std::int64_t>(tensor.nbytes());
  }
  header["data_bytes"] = offset;
  const std::string text = header.dump();

  const std::string path = CheckpointPath(options_.dir, steps_done, options_.rank);
  const std::string temporary = path + ".tmp";
  try {
    File file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    file.Write(std::string(kMagic) + DigestText(text) + " " + std::to_string(text.size()) + "\n" +
               text);
    for (const at::Tensor& tensor : tensors) file.Write(BytesOf(tensor));
    file.Sync();
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) ThrowErrno("renaming " + temporary);
  SyncFolder(options_.dir);
  RemoveOld();
}

StateDict FileCheckpointStore::Load(int steps_done) const {
  const int writers = WritersOf(steps_done);
  const auto load = [&](int rank) {
    const std::string path = CheckpointPath(options_.dir, steps_done, rank);
    try {
      File file(path, O_RDONLY | O_CLOEXEC);
      const Json header = ReadHeader(file);
      CheckOwner(header, steps_done, rank, writers);
      return ReadData(file, header);
    } catch (const std::exception& error) {
      throw std::runtime_error("checkpoint " + path + ": " + error.what());
    }
  };
  if (writers == options_.world_size) return load(options_.rank);
  std::vector<StateDict> saved;
  for (int rank = 0; rank < writers; ++rank) saved.push_back(load(rank));
  return options_.reshard(saved);
}

// The first rank's file says so; DamageOf tells whether the others agree.
int FileCheckpointStore::WritersOf(int steps_done) const {
  if (!options_.reshard) return options_.world_size;
  try {
    File file(CheckpointPath(options_.dir, steps_done, 0), O_RDONLY | O_CLOEXEC);
    return std::max(1, ReadHeader(file).at("world_size").get<int>());
  } catch (const std::exception&) {  // missing, torn or damaged
    return options_.world_size;
  }
}

std::optional<FileCheckpointStore::Damage> FileCheckpointStore::DamageOf(int steps_done,
                                                                         bool check_data) const {
  std::string writer;
  const int writers = WritersOf(steps_done);
  for (int rank = 0; rank < writers; ++rank) {
    try {
      File file(CheckpointPath(options_.dir, steps_done, rank), O_RDONLY | O_CLOEXEC);
      const Json header = ReadHeader(file);
      CheckOwner(header, steps_done, rank, writers);
      if (rank == 0) writer = header.at("writer");
      if (header.at("writer") != writer) {
        throw std::runtime_error(header.at("writer").get<std::string>() +
                                 " wrote it, and that of rank 0 " + writer);
      }
      if (check_data) ReadData(file, header);
    } catch (const std::exception& error) {  // missing, torn or damaged
      return Damage{rank, error.what()};
    }
  }
  return std::nullopt;
}

std::vector<FileCheckpointStore::FileOnDisk> FileCheckpointStore::FilesOnDisk() const {
  std::vector<FileOnDisk> files;
  for (const auto& entry : std::filesystem::directory_iterator(options_.dir)) {
    FileOnDisk file{};
    const std::string name = entry.path().filename();
    if (std::sscanf(name.c_str(), "step-%d.rank%d.", &file.steps_done, &file.rank) != 2) continue;
    const std::filesystem::path whole = CheckpointPath(options_.dir, file.steps_done, file.rank);
    const bool is_own = file.rank == options_.rank;
    if ((is_own || options_.reshard) && entry.path() == whole) files.push_back(file);
  }
  return files;
}

std::vector<int> FileCheckpointStore::StepsOnDisk() const {
  std::set<int> steps;
  for (const FileOnDisk& file : FilesOnDisk()) steps.insert(file.steps_done);
  return {steps.begin(), steps.end()};
}

std::vector<int> FileCheckpointStore::List() const {
  std::vector<int> whole;
  std::vector<std::pair<int, Damage>> newer;  // than the last whole one
  for (int step : StepsOnDisk()) {
    if (auto damage = DamageOf(step, /*check_data=*/true)) {
      newer.emplace_back(step, std::move(*damage));
    } else {
      whole.push_back(step);
      newer.clear();
    }
  }
  for (const auto& [step, damage] : newer) {
    if (options_.on_damaged) options_.on_damaged(step, damage.rank, damage.why);
  }
  return whole;
}

void FileCheckpointStore::RemoveOld() const {
  const std::vector<int> steps = StepsOnDisk();
  int newer_whole = 0, oldest_kept = 0;
  for (auto step = steps.rbegin(); step != steps.rend() && newer_whole < options_.keep; ++step) {
    oldest_kept = *step;
    if (!DamageOf(*step, /*check_data=*/false)) ++newer_whole;
  }
  for (const FileOnDisk& file : FilesOnDisk()) {
    // Files of ranks that are no more are dealt out to those that are.
    if (file.steps_done < oldest_kept && file.rank % options_.world_size == options_.rank) {
      unlink(CheckpointPath(options_.dir, file.steps_done, file.rank).c_str());
    }
  }
}

}  // namespace trainwreck
