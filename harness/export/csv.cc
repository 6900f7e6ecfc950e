#include "harness/export/csv.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

constexpr std::size_t kSpillBytes = 1 << 20;

void AppendNumber(double value, std::string& row) {
  if (!std::isfinite(value)) {
    row += std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return;
  }
  char text[32];
  row.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void AppendNumber(int value, std::string& row) {
  char text[16];
  row.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void AppendText(std::string_view text, std::string& row) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    row += text;
    return;
  }
  row += '"';
  for (const char c : text) row.append(c == '"' ? 2 : 1, c);
  row += '"';
}

// `run,case,arm,seed,`
std::string BeginOfRows(const ExportedRun& run) {
  std::string row;
  for (const std::string& text : {run.name, run.case_name, run.run ? run.run->arm : ""}) {
    AppendText(text, row);
    row += ',';
  }
  if (run.run) AppendNumber(run.run->seed, row);
  return row + ',';
}

std::string Compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Path(const std::string& folder, const char* name) {
  std::filesystem::create_directories(folder);
  return folder + "/" + name;
}

}  // namespace

GrowingTable::GrowingTable(std::string path, const std::string& header)
    : path_(std::move(path)),
      beside_(path_ + ".tmp." + std::to_string(getpid())),
      file_(beside_, std::ios::binary | std::ios::trunc),
      rows_(header) {
  if (!file_) Fail();
}

GrowingTable::~GrowingTable() {
  std::error_code ignored;
  std::filesystem::remove(beside_, ignored);
}

void GrowingTable::Spill() {
  if (rows_.size() < kSpillBytes) return;
  if (!file_.write(rows_.data(), static_cast<std::streamsize>(rows_.size()))) Fail();
  rows_.clear();
}

void GrowingTable::Finish() {
  file_.write(rows_.data(), static_cast<std::streamsize>(rows_.size()));
  file_.close();
  if (!file_ || std::rename(beside_.c_str(), path_.c_str()) != 0) Fail();
}

void GrowingTable::Fail() const {
  throw std::system_error(errno, std::generic_category(), "cannot write " + path_);
}

CsvExport::CsvExport(const std::string& folder)
    : runs_(Path(folder, "runs.csv"),
            "run,case,arm,kind,seed,ranks,steps,end,verdict,class,recipe,faults\n"),
      signals_(Path(folder, "signals.csv"), "run,case,arm,seed,rank,step,module,signal,value\n"),
      events_(Path(folder, "events.csv"), "run,case,arm,seed,rank,step,time,event,fields\n") {}

void CsvExport::AddSignals(const std::string& run, const RunTrace& trace) {
  for (const auto& [key, series] : trace.series) {
    std::string begin = run, end(1, ',');
    AppendNumber(key.second, begin);
    begin += ',';
    const auto [signal, module] = SignalAndModule(key.first);
    AppendText(module, end);
    end += ',';
    AppendText(signal, end);
    end += ',';
    std::string& rows = signals_.rows();
    for (int step = 0; step < static_cast<int>(series.values.size()); ++step) {
      if (series.present[step] == 0) continue;
      rows += begin;
      AppendNumber(step, rows);
      rows += end;
      AppendNumber(series.values[step], rows);
      rows += '\n';
      signals_.Spill();
    }
  }
}

void CsvExport::Add(const ExportedRun& run) {
  const std::string begin = BeginOfRows(run);
  AddSignals(begin, run.trace);
  for (const Event& event : run.trace.events) {
    std::string& rows = events_.rows();
    rows += begin;
    AppendNumber(event.rank, rows);
    rows += ',';
    AppendNumber(event.step, rows);
    rows += ',';
    AppendNumber(event.time_s, rows);
    rows += ',';
    AppendText(event.name, rows);
    rows += ',';
    AppendText(Compact(event.fields), rows);
    rows += '\n';
    events_.Spill();
  }
  const Json about = AboutRun(run);
  std::string& rows = runs_.rows();
  for (const char* column : {"run", "case", "arm", "kind", "seed", "ranks", "steps", "end",
                             "verdict", "class", "recipe", "faults"}) {
    const Json value = about.value(column, Json());
    if (!value.is_null())
      AppendText(value.is_string() ? value.get<std::string>() : Compact(value), rows);
    rows += column == std::string_view("faults") ? '\n' : ',';
  }
  runs_.Spill();
}

void CsvExport::Finish() {
  for (GrowingTable* table : {&runs_, &events_, &signals_}) table->Finish();
}

}  // namespace trainwreck
