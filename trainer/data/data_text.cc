#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "trainer/data/data.h"
#include "trainer/data/tokenizer.h"
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

std::string ReadAll(const fs::path& path) {
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
  TextData(const Text& text, std::int64_t seq_len, SampleStream stream,
           const std::shared_ptr<const Tokenizer>& tokenizer)
      : source_(text.source),
        text_(stream.held_out ? text.held_out : text.training),
        seq_len_(seq_len),
        samples_(stream.samples),
        stream_seed_(MixSeed(stream.seed, stream.held_out ? 2 : 1)),
        weight_(at::ones({seq_len})) {
    ReadWith(tokenizer);
  }

  std::int64_t size() const override { return samples_; }
  std::int64_t input_limit() const override { return tokenizer_->size(); }
  std::int64_t target_limit() const override { return tokenizer_->size(); }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return tokenizer_; }

  void ReadWith(const std::shared_ptr<const Tokenizer>& tokenizer) override {
    tokens_ = tokenizer->Encode(text_);
    if (static_cast<std::int64_t>(tokens_.size()) < 2 * (seq_len_ + 1)) {
      throw std::runtime_error("data.path: too little text in " + source_ + " for data.seq_len " +
                               std::to_string(seq_len_));
    }
    tokenizer_ = tokenizer;
  }

  Sample Get(std::int64_t id) const override {
    SplitMix64 random(MixSeed(stream_seed_, static_cast<std::uint64_t>(id)));
    const auto begin = static_cast<std::ptrdiff_t>(
        random.Below(tokens_.size() - static_cast<std::uint64_t>(seq_len_)));
    at::Tensor tokens = at::empty({seq_len_ + 1}, at::kLong);
    std::copy_n(tokens_.begin() + begin, seq_len_ + 1, tokens.mutable_data_ptr<std::int64_t>());
    return {id, tokens.narrow(0, 0, seq_len_), tokens.narrow(0, 1, seq_len_), weight_};
  }

 private:
  std::string source_;
  std::string text_;
  std::int64_t seq_len_;
  std::int64_t samples_;
  std::uint64_t stream_seed_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::int64_t> tokens_;
  at::Tensor weight_;
};

}  // namespace

Text ReadText(const std::string& path) {
  const std::string source = path.empty() ? kDefaultPath : path;
  const std::string all = ReadAll(source);
  const std::size_t cut = all.size() - all.size() / 10;
  return {.source = source, .training = all.substr(0, cut), .held_out = all.substr(cut)};
}

std::unique_ptr<Dataset> MakeTextData(const Text& text, std::int64_t seq_len, SampleStream stream,
                                      std::shared_ptr<const Tokenizer> tokenizer) {
  return std::make_unique<TextData>(text, seq_len, stream, std::move(tokenizer));
}

}  // namespace trainwreck
