// Byte-pair encoding (Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword
// Units"), of bytes (Radford et al. 2019): a token is a byte, or two tokens that stood side by side
// often in the text that the vocabulary was learned from.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainwreck {

// The tokens that a merge joins.
using Merge = std::pair<std::int64_t, std::int64_t>;

// Tokens, in the order of their numbers: `reserved` ones that no text has (for padding, say), the
// 256 bytes, and one for each merge. Any text can be encoded, and decoding gives it back.
class Tokenizer {
 public:
  // Throws std::invalid_argument when a merge joins tokens that are not there yet.
  explicit Tokenizer(std::vector<Merge> merges = {}, std::int64_t reserved = 0);

  std::int64_t size() const { return reserved_ + static_cast<std::int64_t>(texts_.size()); }
  std::int64_t reserved() const { return reserved_; }
  const std::vector<Merge>& merges() const { return merges_; }
  // Whether each token is a byte, and its number that byte.
  bool is_plain() const { return merges_.empty() && reserved_ == 0; }

  // Merges are made within words (SplitIntoWords), the earliest first.
  std::vector<std::int64_t> Encode(std::string_view text) const;
  std::string Decode(const std::vector<std::int64_t>& tokens) const;
  // The text of a token; empty: a reserved one, or there is no such token.
  std::string_view TextOf(std::int64_t token) const;
  // Of everything that decides how text is encoded.
  std::string Digest() const;

 private:
  std::vector<std::int64_t> EncodeWord(std::string_view word) const;

  std::vector<Merge> merges_;
  std::int64_t reserved_;
  std::map<Merge, std::int64_t> merged_;  // the token that a pair becomes
  std::vector<std::string> texts_;        // of the tokens behind the reserved ones
};

// Words with the blank before them, runs of digits, of other characters, and of white space: their
// concatenation is `text`. No token is part of two of them.
std::vector<std::string_view> SplitIntoWords(std::string_view text);

// Merges the most frequent pair of `text` again and again; of equally frequent ones the one with
// the lower numbers. Fewer than `merges` where no pair occurs twice.
Tokenizer LearnTokenizer(std::string_view text, std::int64_t merges);

}  // namespace trainwreck
