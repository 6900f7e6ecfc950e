// One file of a trace while it is read: how far, and which signals it has shown. For
// trace_reader.cc alone.
#pragma once

#include <simdjson.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/protocol/trace_reader.h"

namespace trainwreck {

struct TraceReader::File {
  static constexpr std::size_t kMostColumns = 4096;
  static constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

  class Descriptor {
   public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
      std::swap(fd_, other.fd_);
      return *this;
    }
    ~Descriptor() {
      if (fd_ >= 0) close(fd_);
    }
    int get() const { return fd_; }

   private:
    int fd_ = -1;
  };

  // A signal of a file that has been seen before.
  struct Column {
    std::string_view name;  // in the trace's map
    Series* series = nullptr;
    std::size_t next = 0;  // the column that came after it the last time
  };

  std::string name;
  int rank = -1;  // -1: the launcher's
  Descriptor fd;
  std::int64_t offset = 0;
  int line = 0;
  bool broken = false;           // over a limit: nothing more is read
  std::string tail;              // of an unfinished line
  std::int64_t start_bytes = 0;  // what its last start takes in memory
  // A step whose number was there before, told once: of the first signal of the file, since its
  // last start or return to an earlier step.
  std::string watched;
  const Series* watched_series = nullptr;
  int newest_step = -1;
  int new_world = 0;  // the number of ranks of a start whose first step is to come; 0: none
  bool has_repeats = false;
  int beginnings = 0;  // how often step 0 was made
  // Its signals, so that a name that comes where it was the last time is not searched for.
  std::vector<Column> columns;
  std::unordered_map<std::string_view, std::size_t> column_of;
  std::size_t first_column = 0;
  std::size_t column = kNoColumn;  // of the member before, in the record at hand

  // Whether a record with the watched signal repeats a step. Several records of one step are no
  // repetition: they may hold different signals.
  bool Repeats(int step) {
    if (has_repeats) return false;
    has_repeats = step <= newest_step;
    newest_step = std::max(newest_step, step);
    return has_repeats;
  }

  bool KnowsWatched(const TraceReader& reader) {
    if (watched_series == nullptr && !watched.empty()) {
      watched_series = reader.trace_.Find(reader.NameOf(watched), rank);
    }
    return watched_series != nullptr;
  }

  // Null when the trace has no such signal.
  Series* SeriesOf(std::string_view key, TraceReader& reader) {
    const std::size_t hint = column == kNoColumn ? first_column : columns[column].next;
    if (hint < columns.size() && columns[hint].name == key) {
      column = hint;
      return columns[hint].series;
    }
    auto known = column_of.find(key);
    if (known == column_of.end()) {
      auto& all = reader.trace_.series;
      auto found = all.find({reader.NameOf(key), rank});
      if (found == all.end()) return nullptr;
      if (columns.size() == kMostColumns || found->first.first != key) return &found->second;
      known = column_of.emplace(found->first.first, columns.size()).first;
      columns.push_back({found->first.first, &found->second});
    }
    (column == kNoColumn ? first_column : columns[column].next) = known->second;
    column = known->second;
    return columns[column].series;
  }

  void ForgetColumns() {
    columns.clear();
    column_of.clear();
    watched_series = nullptr;
  }

  // The unfinished line with its end, followed by what simdjson may read.
  std::string_view Completed(std::string_view end) {
    tail.append(end);
    tail.reserve(tail.size() + simdjson::SIMDJSON_PADDING);
    return tail;
  }
};

}  // namespace trainwreck
