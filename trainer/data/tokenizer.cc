#include "trainer/data/tokenizer.h"

#include <stdexcept>
#include <unordered_map>

#include "harness/protocol/digest.h"

namespace trainwreck {
namespace {

constexpr std::int64_t kBytes = 256;

enum class Class { kSpace, kLetter, kDigit, kOther };

// Of ASCII alone, whatever the locale is; bytes of longer characters are letters.
Class ClassOf(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte == ' ' || (byte >= '\t' && byte <= '\r')) return Class::kSpace;
  if (byte >= '0' && byte <= '9') return Class::kDigit;
  const unsigned char lower = byte | 0x20;
  return (lower >= 'a' && lower <= 'z') || byte >= 0x80 ? Class::kLetter : Class::kOther;
}

// All places of the pair in `tokens`, from the left, become `merged`.
void Replace(std::vector<std::int64_t>& tokens, const Merge& pair, std::int64_t merged) {
  std::size_t to = 0;
  for (std::size_t from = 0; from < tokens.size(); ++from) {
    const bool is_pair =
        from + 1 < tokens.size() && tokens[from] == pair.first && tokens[from + 1] == pair.second;
    tokens[to++] = is_pair ? merged : tokens[from];
    if (is_pair) ++from;
  }
  tokens.resize(to);
}

struct CountedWord {
  std::vector<std::int64_t> tokens;
  std::int64_t count = 0;
};

std::vector<CountedWord> CountWords(std::string_view text) {
  std::map<std::string_view, std::int64_t> counts;
  for (const std::string_view word : SplitIntoWords(text)) ++counts[word];
  std::vector<CountedWord> words;
  for (const auto& [word, count] : counts) {
    CountedWord counted{.count = count};
    for (const char c : word) counted.tokens.push_back(static_cast<unsigned char>(c));
    words.push_back(std::move(counted));
  }
  return words;
}

// How often pairs stand side by side, kept up to date as they are merged.
class PairCounts {
 public:
  void Add(const CountedWord& word, std::int64_t sign) {
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      counts_[{word.tokens[i], word.tokens[i + 1]}] += sign * word.count;
    }
  }

  // The pair that occurs most often, and how often.
  std::pair<Merge, std::int64_t> Most() const {
    std::pair<Merge, std::int64_t> most = {{}, 0};
    for (const auto& [pair, count] : counts_) {  // in the order of their numbers
      if (count > most.second) most = {pair, count};
    }
    return most;
  }

 private:
  std::map<Merge, std::int64_t> counts_;
};

bool HasPair(const std::vector<std::int64_t>& tokens, const Merge& pair) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i] == pair.first && tokens[i + 1] == pair.second) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string_view> SplitIntoWords(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = begin;
    // One blank belongs to the word behind it.
    const bool has_blank =
        text[begin] == ' ' && begin + 1 < text.size() && ClassOf(text[begin + 1]) != Class::kSpace;
    if (has_blank) ++end;
    const Class kind = ClassOf(text[end]);
    while (end < text.size() && ClassOf(text[end]) == kind) ++end;
    const bool leaves_blank =
        kind == Class::kSpace && end < text.size() && end - begin > 1 && text[end - 1] == ' ';
    if (leaves_blank) --end;
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

Tokenizer::Tokenizer(std::vector<Merge> merges, std::int64_t reserved)
    : merges_(std::move(merges)), reserved_(reserved) {
  for (std::int64_t byte = 0; byte < kBytes; ++byte) {
    texts_.emplace_back(1, static_cast<char>(byte));
  }
  for (const Merge& merge : merges_) {
    if (TextOf(merge.first).empty() || TextOf(merge.second).empty()) {
      throw std::invalid_argument("a tokenizer's merge joins tokens that are not there yet");
    }
    merged_.emplace(merge, size());
    texts_.push_back(std::string(TextOf(merge.first)) + std::string(TextOf(merge.second)));
  }
}

std::string_view Tokenizer::TextOf(std::int64_t token) const {
  if (token < reserved_ || token >= size()) return {};
  return texts_[static_cast<std::size_t>(token - reserved_)];
}

std::vector<std::int64_t> Tokenizer::EncodeWord(std::string_view word) const {
  std::vector<std::int64_t> tokens;
  for (const char c : word) tokens.push_back(reserved_ + static_cast<unsigned char>(c));
  while (true) {
    // Tokens are numbered in the order of the merges.
    auto first = merged_.end();
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto merge = merged_.find({tokens[i], tokens[i + 1]});
      if (merge == merged_.end()) continue;
      if (first == merged_.end() || merge->second < first->second) first = merge;
    }
    if (first == merged_.end()) return tokens;
    Replace(tokens, first->first, first->second);
  }
}

std::vector<std::int64_t> Tokenizer::Encode(std::string_view text) const {
  std::unordered_map<std::string_view, std::vector<std::int64_t>> known;
  std::vector<std::int64_t> tokens;
  for (const std::string_view word : SplitIntoWords(text)) {
    auto encoded = known.find(word);
    if (encoded == known.end()) encoded = known.emplace(word, EncodeWord(word)).first;
    tokens.insert(tokens.end(), encoded->second.begin(), encoded->second.end());
  }
  return tokens;
}

std::string Tokenizer::Decode(const std::vector<std::int64_t>& tokens) const {
  std::string text;
  for (const std::int64_t token : tokens) text += TextOf(token);
  return text;
}

std::string Tokenizer::Digest() const {
  std::string text = std::to_string(reserved_);
  for (const Merge& merge : merges_) {
    text += " " + std::to_string(merge.first) + "+" + std::to_string(merge.second);
  }
  return DigestText(text);
}

Tokenizer LearnTokenizer(std::string_view text, std::int64_t merges) {
  std::vector<CountedWord> words = CountWords(text);
  PairCounts pairs;
  for (const CountedWord& word : words) pairs.Add(word, 1);
  std::vector<Merge> learned;
  while (static_cast<std::int64_t>(learned.size()) < merges) {
    const auto [pair, count] = pairs.Most();
    if (count < 2) break;
    const std::int64_t merged = kBytes + static_cast<std::int64_t>(learned.size());
    for (CountedWord& word : words) {
      if (!HasPair(word.tokens, pair)) continue;
      pairs.Add(word, -1);
      Replace(word.tokens, pair, merged);
      pairs.Add(word, 1);
    }
    learned.push_back(pair);
  }
  return Tokenizer(std::move(learned));
}

}  // namespace trainwreck
