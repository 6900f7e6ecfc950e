#include "harness/targets/event_file.h"

#include <array>
#include <cstring>

namespace trainwreck {
namespace {

constexpr std::uint64_t kMaxRecordBytes = 64 << 20;  // images and histograms are in there, too
constexpr std::size_t kHeaderBytes = 12, kFooterBytes = 4;

std::uint32_t Masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; }

template <typename T>
T Load(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <typename T>
void Store(T value, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// One field of a protocol buffer after the other.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  bool Next() {
    if (bytes_.empty() || !is_sound_) return false;
    const std::uint64_t key = Varint();
    number_ = static_cast<int>(key >> 3);
    type_ = static_cast<int>(key & 7);
    switch (type_) {
      case 0:
        integer_ = Varint();
        break;
      case 1:
        text_ = Take(8);
        break;
      case 2:
        text_ = Take(Varint());
        break;
      case 5:
        text_ = Take(4);
        break;
      default:
        is_sound_ = false;
    }
    return is_sound_;
  }

  bool Is(int number, int type) const { return number_ == number && type_ == type; }
  std::uint64_t integer() const { return integer_; }
  std::string_view text() const { return text_; }
  template <typename T>
  T number() const {
    return Load<T>(text_);
  }
  bool is_sound() const { return is_sound_; }

 private:
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    is_sound_ = false;
    return 0;
  }

  std::string_view Take(std::uint64_t size) {
    if (size > bytes_.size()) {
      is_sound_ = false;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  bool is_sound_ = true;
  int number_ = 0;
  int type_ = 0;
  std::uint64_t integer_ = 0;
  std::string_view text_;
};

// TensorProto: a scalar of type float (1) or double (2), as TensorFlow 2 writes it.
std::optional<double> ScalarOfTensor(std::string_view bytes) {
  std::uint64_t type = 0;
  std::optional<double> value;
  for (Fields fields(bytes); fields.Next();) {
    if (fields.Is(1, 0)) {
      type = fields.integer();
    } else if (fields.Is(4, 2) && type == 1 && fields.text().size() == sizeof(float)) {
      value = Load<float>(fields.text());
    } else if (fields.Is(4, 2) && type == 2 && fields.text().size() == sizeof(double)) {
      value = Load<double>(fields.text());
    } else if (fields.Is(5, 2) && fields.text().size() == sizeof(float)) {  // packed
      value = Load<float>(fields.text());
    } else if (fields.Is(5, 5)) {
      value = fields.number<float>();
    } else if (fields.Is(6, 2) && fields.text().size() == sizeof(double)) {
      value = Load<double>(fields.text());
    } else if (fields.Is(6, 1)) {
      value = fields.number<double>();
    }
  }
  return value;
}

void ParseValue(std::string_view bytes, std::vector<ScalarEvent>& scalars) {
  ScalarEvent scalar;
  std::optional<double> value;
  for (Fields fields(bytes); fields.Next();) {
    if (fields.Is(1, 2)) scalar.tag = fields.text();
    if (fields.Is(2, 5)) value = fields.number<float>();
    if (fields.Is(8, 2)) value = ScalarOfTensor(fields.text());
  }
  if (!value) return;  // a histogram, say
  scalar.value = *value;
  scalars.push_back(std::move(scalar));
}

void AppendVarint(std::uint64_t value, std::string& bytes) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}

void AppendText(int number, const std::string& text, std::string& bytes) {
  AppendVarint(static_cast<std::uint64_t>(number) << 3 | 2, bytes);
  AppendVarint(text.size(), bytes);
  bytes += text;
}

void AppendRecord(const std::string& record, std::string& file) {
  std::string length;
  Store(std::uint64_t{record.size()}, length);
  file += length;
  Store(Masked(Crc32c(length)), file);
  file += record;
  Store(Masked(Crc32c(record)), file);
}

std::string EventBegin(double wall_time, std::int64_t step) {
  std::string event(1, '\x09');  // field 1, 64 bits
  Store(wall_time, event);
  event += '\x10';  // field 2, varint
  AppendVarint(static_cast<std::uint64_t>(step), event);
  return event;
}

}  // namespace

std::uint32_t Crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0);
      made[i] = crc;
    }
    return made;
  }();
  std::uint32_t crc = ~0U;
  for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::optional<std::string> RecordSplitter::Next() {
  const std::string_view view = std::string_view{bytes_}.substr(begin_);
  if (!error_.empty() || view.size() < kHeaderBytes) return std::nullopt;
  const auto length = Load<std::uint64_t>(view);
  if (Load<std::uint32_t>(view.substr(8)) != Masked(Crc32c(view.substr(0, 8))) ||
      length > kMaxRecordBytes) {
    error_ = "the checksum of a record's length is wrong";
    return std::nullopt;
  }
  if (view.size() < kHeaderBytes + length + kFooterBytes) return std::nullopt;
  const std::string_view data = view.substr(kHeaderBytes, length);
  if (Load<std::uint32_t>(view.substr(kHeaderBytes + length)) != Masked(Crc32c(data))) {
    error_ = "the checksum of a record is wrong";
    return std::nullopt;
  }
  begin_ += kHeaderBytes + length + kFooterBytes;
  return std::string(data);
}

bool ParseEvent(std::string_view record, std::vector<ScalarEvent>& scalars) {
  double wall_time = 0;
  std::int64_t step = 0;
  const std::size_t before = scalars.size();
  Fields fields(record);
  while (fields.Next()) {
    if (fields.Is(1, 1)) wall_time = fields.number<double>();
    if (fields.Is(2, 0)) step = static_cast<std::int64_t>(fields.integer());
    if (!fields.Is(5, 2)) continue;
    for (Fields summary(fields.text()); summary.Next();) {
      if (summary.Is(1, 2)) ParseValue(summary.text(), scalars);
    }
  }
  for (std::size_t i = before; i < scalars.size(); ++i) {
    scalars[i].wall_time = wall_time;
    scalars[i].step = step;
  }
  return fields.is_sound();
}

std::string EncodeEventFile(const std::vector<ScalarEvent>& scalars) {
  std::string file, version = EventBegin(scalars.empty() ? 0 : scalars.front().wall_time, 0);
  AppendText(3, "brain.Event:2", version);
  AppendRecord(version, file);
  for (const ScalarEvent& scalar : scalars) {
    std::string value, summary, event = EventBegin(scalar.wall_time, scalar.step);
    AppendText(1, scalar.tag, value);
    value += '\x15';  // field 2, 32 bits
    Store(static_cast<float>(scalar.value), value);
    AppendText(1, value, summary);
    AppendText(5, summary, event);
    AppendRecord(event, file);
  }
  return file;
}

}  // namespace trainwreck
