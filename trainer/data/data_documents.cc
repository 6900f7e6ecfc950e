#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "trainer/data/data.h"
#include "trainer/devices/rng.h"

namespace trainwreck {
namespace {

constexpr std::uint64_t kLengthStream = 0x6c656e677468;

class DocumentRows : public DatasetAround {
 public:
  DocumentRows(std::unique_ptr<Dataset> documents, std::int64_t document_tokens,
               std::int64_t row_tokens, std::int64_t per_row, SampleStream stream)
      : DatasetAround(std::move(documents)),
        longest_(document_tokens),
        row_tokens_(row_tokens),
        per_row_(per_row),
        rows_(stream.samples),
        length_seed_(MixSeed(stream.seed, stream.held_out ? kLengthStream + 1 : kLengthStream)) {}

  std::int64_t size() const override { return rows_; }

  Sample Get(std::int64_t id) const override {
    Sample row{.id = id,
               .input = at::zeros({row_tokens_}, at::kLong),
               .target = at::zeros({row_tokens_}, at::kLong),
               .weight = at::zeros({row_tokens_})};
    if (per_row_ > 1) row.document = at::full({row_tokens_}, per_row_, at::kLong);  // of padding
    std::int64_t begin = 0;
    for (std::int64_t d = 0; d < per_row_; ++d) {
      const std::int64_t number = id * per_row_ + d;
      const Sample document = inner().Get(number);
      const std::int64_t length = LengthOf(number);
      for (at::Tensor Sample::*field : {&Sample::input, &Sample::target, &Sample::weight}) {
        (row.*field).narrow(0, begin, length).copy_((document.*field).narrow(0, 0, length));
      }
      if (per_row_ > 1) row.document.narrow(0, begin, length).fill_(d);
      begin += length;
    }
    return row;
  }

  std::int64_t length(std::int64_t id) const override {
    std::int64_t tokens = 0;
    for (std::int64_t d = 0; d < per_row_; ++d) tokens += LengthOf(id * per_row_ + d);
    return tokens;
  }

 private:
  std::int64_t LengthOf(std::int64_t number) const {
    SplitMix64 random(MixSeed(length_seed_, static_cast<std::uint64_t>(number)));
    return longest_ -
           static_cast<std::int64_t>(random.Below(static_cast<std::uint64_t>(longest_ / 2 + 1)));
  }

  std::int64_t longest_;  // tokens of a document
  std::int64_t row_tokens_, per_row_, rows_;
  std::uint64_t length_seed_;
};

}  // namespace

std::unique_ptr<Dataset> RowsOfDocuments(std::unique_ptr<Dataset> documents,
                                         std::int64_t document_tokens, std::int64_t row_tokens,
                                         std::int64_t per_row, SampleStream stream) {
  return std::make_unique<DocumentRows>(std::move(documents), document_tokens, row_tokens, per_row,
                                        stream);
}

}  // namespace trainwreck
