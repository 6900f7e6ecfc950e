// TensorBoard's event files: records with lengths and checksums, each an Event as a protocol
// buffer. Only scalars are read here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainwreck {

struct ScalarEvent {
  std::string tag;
  std::int64_t step = 0;
  double wall_time = 0;
  double value = 0;
};

std::uint32_t Crc32c(std::string_view bytes);

// Extracts records from bytes that come in pieces.
class RecordSplitter {
 public:
  void Append(std::string_view bytes) {
    bytes_.erase(0, begin_);
    begin_ = 0;
    bytes_.append(bytes);
  }
  // The next whole record; empty when there is none yet, or `error()` is set for good.
  std::optional<std::string> Next();
  const std::string& error() const { return error_; }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  // the first byte that was not returned yet
  std::string error_;
};

// The scalars of one Event; false when the bytes are no protocol buffer.
bool ParseEvent(std::string_view record, std::vector<ScalarEvent>& scalars);

// The bytes of an event file with these scalars, for TensorBoard to read.
std::string EncodeEventFile(const std::vector<ScalarEvent>& scalars);

}  // namespace trainwreck
