#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "trainer/data/data.h"
#include "trainer/devices/rng.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr char kDefaultPath[] = "/usr/share/common-licenses";

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("data.path: cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string ReadText(const fs::path& path) {
  if (!fs::is_directory(path)) return ReadFile(path);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    // Links would give the same text twice, and a held-out part that was trained on.
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::string text;
  for (const fs::path& file : files) text += ReadFile(file);
  return text;
}

class TextData : public Dataset {
 public:
  TextData(const std::string& path, std::int64_t seq_len, SampleStream stream)
      : seq_len_(seq_len),
        stream_(stream),
        stream_seed_(MixSeed(stream.seed, stream.held_out ? 2 : 1)),
        weight_(at::ones({seq_len})) {
    const fs::path source = path.empty() ? kDefaultPath : path;
    const std::string text = ReadText(source);
    const std::size_t cut = text.size() - text.size() / 10;
    text_ = stream.held_out ? text.substr(cut) : text.substr(0, cut);
    if (static_cast<std::int64_t>(text_.size()) < 2 * (seq_len + 1)) {
      throw std::runtime_error("data.path: too little text in " + source.string() +
                               " for data.seq_len " + std::to_string(seq_len));
    }
  }

  std::int64_t size() const override { return stream_.samples; }
  std::int64_t input_limit() const override { return 256; }
  std::int64_t target_limit() const override { return 256; }

  Sample Get(std::int64_t id) const override {
    SplitMix64 random(MixSeed(stream_seed_, static_cast<std::uint64_t>(id)));
    const std::uint64_t begin = random.Below(text_.size() - static_cast<std::uint64_t>(seq_len_));
    at::Tensor tokens = at::empty({seq_len_ + 1}, at::kLong);
    auto* data = tokens.mutable_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i <= seq_len_; ++i) {
      data[i] = static_cast<unsigned char>(text_[begin + static_cast<std::uint64_t>(i)]);
    }
    return {id, tokens.narrow(0, 0, seq_len_), tokens.narrow(0, 1, seq_len_), weight_};
  }

 private:
  std::int64_t seq_len_;
  SampleStream stream_;
  std::uint64_t stream_seed_;
  std::string text_;
  at::Tensor weight_;
};

}  // namespace

std::unique_ptr<Dataset> MakeTextData(const std::string& path, std::int64_t seq_len,
                                      SampleStream stream) {
  return std::make_unique<TextData>(path, seq_len, stream);
}

}  // namespace trainwreck
