#include "harness/export/json_lines.h"

namespace trainwreck {

void JsonLinesExport::Write(const Json& line) {
  write_(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void JsonLinesExport::Add(const ExportedRun& run) {
  ++runs_;
  Json about = AboutRun(run);
  if (run.verdict != nullptr) about["report"] = CaseMarkdown(*run.verdict);
  Write(about);
  for (const auto& [key, series] : run.trace.series) {
    const auto [signal, module] = SignalAndModule(key.first);
    Json steps = Json::array(), values = Json::array();
    for (int step = 0; step < static_cast<int>(series.values.size()); ++step) {
      if (series.present[step] == 0) continue;
      steps.push_back(step);
      values.push_back(EncodeNumber(series.values[step]));
    }
    Write({{"signal", signal},
           {"module", module},
           {"rank", key.second},
           {"steps", std::move(steps)},
           {"values", std::move(values)}});
  }
  for (const Event& event : run.trace.events) {
    Write({{"event", event.name},
           {"rank", event.rank},
           {"step", event.step},
           {"time", event.time_s},
           {"fields", event.fields}});
  }
}

void JsonLinesExport::Finish() { Write({{"end", runs_}}); }

}  // namespace trainwreck
