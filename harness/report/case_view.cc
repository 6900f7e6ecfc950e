#include "harness/report/case_view.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "harness/report/chart.h"
#include "harness/report/console.h"
#include "harness/report/text.h"
#include "harness/text/files.h"
#include "harness/text/words.h"
#include "harness/yaml/diagnostic.h"

namespace trainwreck {
namespace {

constexpr int kLabelWidth = 11;  // of a curve's scale: "    0.02658 "
constexpr int kMostColumns = 120;
constexpr int kMostEvents = 12;  // of an arm; the others are counted
constexpr int kBarWidth = 12;

std::string OneLine(const std::string& text) {
  std::string line = CleanText(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string Left(const std::string& text, int width) {
  const int missing = width - static_cast<int>(text.size());
  return missing > 0 ? text + std::string(missing, ' ') : text;
}

std::string Right(const std::string& text, int width) {
  const int missing = width - static_cast<int>(text.size());
  return missing > 0 ? std::string(missing, ' ') + text : text;
}

struct Curve {
  const ArmSummary* arm = nullptr;
  int seed = -1;
  std::vector<int> steps;
  std::vector<double> values;
};

Curve CurveOf(const ArmSummary& arm, const KeptTrace* kept, const std::string& signal) {
  Curve curve{.arm = &arm, .seed = arm.median_seed, .steps = {}, .values = {}};
  if (kept == nullptr) {
    if (signal == "loss") {
      curve.steps = arm.steps;
      curve.values = arm.loss;
    }
    return curve;
  }
  curve.seed = kept->seed;
  const Series* series = kept->trace.Find(signal, 0);
  for (int step = 0; series != nullptr && step < static_cast<int>(series->values.size()); ++step) {
    if (!series->Has(step)) continue;
    curve.steps.push_back(step);
    curve.values.push_back(series->values[step]);
  }
  return curve;
}

// By time: a trace has the events of each rank one after the other.
std::vector<const Event*> InOrder(const std::vector<Event>& events) {
  std::vector<const Event*> sorted;
  for (const Event& event : events) sorted.push_back(&event);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Event* a, const Event* b) { return a->time_s < b->time_s; });
  return sorted;
}

// Events of one name that follow each other are one.
struct EventGroup {
  const Event* first = nullptr;
  const Event* last = nullptr;
  int count = 0;
};

std::vector<EventGroup> Group(const std::vector<Event>& events) {
  std::vector<EventGroup> groups;
  for (const Event* one : InOrder(events)) {
    const Event& event = *one;
    if (groups.empty() || groups.back().first->name != event.name ||
        groups.back().first->rank != event.rank) {
      groups.push_back({.first = &event, .last = &event, .count = 0});
    }
    groups.back().last = &event;
    ++groups.back().count;
  }
  return groups;
}

std::string FieldsOf(const Event& event) {
  std::vector<std::string> fields;
  for (const auto& [key, value] : event.fields.items()) {
    if (key == "t" || key == "event" || key == "step" || key == "time" || key == "rank") continue;
    if (value.is_string() && value.get_ref<const std::string&>().empty()) continue;
    fields.push_back(key + "=" +
                     (value.is_string() ? value.get<std::string>()
                      : value.is_number_float()
                          ? FormatNumber(value.get<double>())
                          : value.dump(-1, ' ', false, Json::error_handler_t::replace)));
  }
  return Join(fields, " ");
}

class View {
 public:
  View(const Verdict& verdict, const std::map<std::string, KeptTrace>& runs,
       const CaseViewOptions& options)
      : verdict_(verdict), runs_(runs), options_(options) {}

  std::string Text() {
    Heading();
    Curves();
    Events();
    Checks();
    Commands();
    return out_.str();
  }

 private:
  const KeptTrace* KeptOf(const std::string& arm) const {
    const auto found = runs_.find(arm);
    return found == runs_.end() ? nullptr : &found->second;
  }

  std::string Bold(const std::string& text) const {
    return options_.color ? "\x1b[1m" + text + "\x1b[0m" : text;
  }

  std::string Alarm(const std::string& text) const {
    return options_.color ? "\x1b[1;31m" + text + "\x1b[0m" : text;
  }

  // A label and its text, wrapped.
  void Line(const std::string& label, const std::string& text, int indent = 0) {
    if (text.empty()) return;
    const std::string begin = std::string(indent, ' ') + Left(label, 10) + ' ';
    out_ << Wrapped(begin, OneLine(text), options_.width, std::string(begin.size(), ' ')) << "\n";
  }

  void Heading() {
    const bool is_fine = verdict_.verdict == VerdictKind::kPass;
    const std::string outcome =
        UpperCase(ToString(verdict_.verdict)) +
        (verdict_.failure_class.empty() ? "" : " " + verdict_.failure_class.text());
    const std::string heading = outcome + "  " + OneLine(verdict_.case_name);
    out_ << (is_fine ? Bold(heading) : Alarm(heading)) << "\n"
         << Wrapped("", OneLine(verdict_.title), options_.width, "") << "\n";
    Line("why", verdict_.reason);
    if (verdict_.worst_margin) {
      Line("margin",
           FormatMargin(*verdict_.worst_margin, verdict_.worst_margin_unit) + " (the weakest)");
    }
    for (const std::string& remark : verdict_.remarks) Line("remark", remark);
    for (const Note& note : verdict_.notes) Line("note", NoteLine(note).substr(6));
  }

  void Curves() {
    std::vector<Curve> curves;
    std::vector<const std::vector<double>*> all;
    for (const ArmSummary& arm : verdict_.arms) {
      curves.push_back(CurveOf(arm, KeptOf(arm.arm), options_.signal));
    }
    for (const Curve& curve : curves) all.push_back(&curve.values);
    const SparkScale scale = FitScale(all);
    const std::string heading = OneLine(options_.signal) + " of rank 0, one scale for all arms" +
                                (scale.log ? ", logarithmic" : "") + "; x: not finite";
    out_ << "\n" << Wrapped("", heading, options_.width, "") << "\n";
    // One step is as wide in all curves, the longest of which fills the window.
    std::size_t samples = 0;
    int last = 0;
    for (const Curve& curve : curves) {
      samples = std::max(samples, curve.values.size());
      if (!curve.steps.empty()) last = std::max(last, curve.steps.back());
    }
    const int room = std::clamp(options_.width - kLabelWidth - 1, 8, kMostColumns);
    const double columns = static_cast<double>(std::min<std::size_t>(room, samples)) / (last + 1);
    for (const Curve& curve : curves) Picture(curve, scale, columns);
  }

  void Picture(const Curve& curve, const SparkScale& scale, double columns_of_step) {
    const ArmSummary& arm = *curve.arm;
    std::string heading = arm.arm + " (" + ToString(arm.kind) + ", " + ToString(arm.status);
    if (curve.seed >= 0) heading += ", seed " + std::to_string(curve.seed);
    heading += ")";
    if (!curve.values.empty()) heading += ", ends at " + FormatNumber(curve.values.back());
    out_ << "\n" << Wrapped("  ", OneLine(heading), options_.width, "  ") << "\n";
    if (!arm.ended.empty()) Line("ended", arm.ended, 2);
    if (curve.values.empty()) {
      out_ << "  " << (arm.is_undo ? "only undoes the fault: not run" : "no samples") << "\n";
      return;
    }
    const int width =
        std::max(1, static_cast<int>(std::lround(columns_of_step * (curve.steps.back() + 1))));
    const std::vector<std::string> lines =
        Chart(curve.values, scale,
              {.width = width, .height = options_.height, .unicode = options_.unicode});
    for (std::size_t line = 0; line < lines.size(); ++line) {
      const bool is_top = line == 0, is_foot = line + 1 == lines.size();
      const std::string label = is_top    ? FormatNumber(scale.hi)
                                : is_foot ? FormatNumber(scale.lo)
                                          : "";
      out_ << Right(label, kLabelWidth - 1) << ' ' << lines[line] << "\n";
    }
    Axis(curve, width);
  }

  // The first and the last step, and below the curve where the fault fired first.
  void Axis(const Curve& curve, int width) {
    const int columns = std::min<int>(width, static_cast<int>(curve.values.size()));
    const std::string first = std::to_string(curve.steps.front());
    const std::string last = std::to_string(curve.steps.back());
    out_ << std::string(kLabelWidth, ' ') << first
         << Right(last, std::max(columns - static_cast<int>(first.size()),
                                 static_cast<int>(last.size()) + 1))
         << "\n";
    const KeptTrace* kept = KeptOf(curve.arm->arm);
    if (kept == nullptr) return;
    const auto fired =
        std::find_if(kept->trace.events.begin(), kept->trace.events.end(),
                     [](const Event& event) { return event.name == "fired" && event.step >= 0; });
    if (fired == kept->trace.events.end()) return;
    const auto at = std::lower_bound(curve.steps.begin(), curve.steps.end(), fired->step);
    const int column =
        ColumnOf(static_cast<std::size_t>(at - curve.steps.begin()), curve.values.size(), width);
    const std::string mark = "^ fired at step " + std::to_string(fired->step);
    const int most = std::max(0, options_.width - kLabelWidth - static_cast<int>(mark.size()) - 1);
    if (column < 0) return;
    // Behind its mark, or before it where that is too wide.
    if (column <= most) {
      out_ << std::string(kLabelWidth + column, ' ') << mark << "\n";
    } else {
      out_ << Right("fired at step " + std::to_string(fired->step) + " ^", kLabelWidth + column + 1)
           << "\n";
    }
  }

  void Events() {
    if (runs_.empty()) {
      out_ << "\nevents: no run was kept ('trainwreck run --keep all' keeps all)\n";
      return;
    }
    out_ << "\n" << Bold("events") << "\n";
    for (const ArmSummary& arm : verdict_.arms) {
      const KeptTrace* kept = KeptOf(arm.arm);
      if (kept == nullptr) continue;
      const std::vector<EventGroup> groups = Group(kept->trace.events);
      out_ << "  " << OneLine(arm.arm) << ", seed " << kept->seed
           << (groups.empty() ? ": none\n" : "\n");
      int shown = 0;
      for (const EventGroup& group : groups) {
        if (++shown > kMostEvents) break;
        const Event& event = *group.first;
        const std::string place =
            (event.step < 0 ? "start" : "step " + std::to_string(event.step)) +
            (event.rank < 0 ? "" : ", rank " + std::to_string(event.rank));
        std::string text = event.name;
        if (group.count > 1) {
          text += " (" + std::to_string(group.count) + " times to step " +
                  std::to_string(group.last->step) + ")";
        }
        const std::string begin = "    " + Left(place, 18) + ' ';
        out_ << Wrapped(begin, OneLine(text + " " + FieldsOf(event)), options_.width,
                        std::string(8, ' '))
             << "\n";
      }
      if (groups.size() > static_cast<std::size_t>(kMostEvents)) {
        out_ << "    and " << groups.size() - kMostEvents << " more: rank<k>.jsonl in "
             << OneLine(kept->folder) << "\n";
      }
    }
  }

  // The largest finite margin of a unit, which has the longest bar.
  double LargestOf(formula::Unit unit) const {
    double largest = 0;
    for (const CheckResult& check : verdict_.checks) {
      if (check.unit != unit || !check.worst_margin || !std::isfinite(*check.worst_margin))
        continue;
      largest = std::max(largest, std::abs(*check.worst_margin));
    }
    return largest;
  }

  std::string MarginOf(const CheckResult& check) const {
    if (!check.worst_margin) return "";
    const double margin = *check.worst_margin, largest = LargestOf(check.unit);
    const double share = std::isinf(margin) ? 1 : largest > 0 ? std::abs(margin) / largest : 0;
    return Left(FormatMargin(margin, check.unit), 18) + ' ' +
           Bar(share, kBarWidth, options_.unicode);
  }

  void Checks() {
    out_ << "\n" << Bold("checks") << " (the margin is that of the worst seed)\n";
    for (const CheckResult& check : verdict_.checks) {
      const bool is_fine = check.failure_class.empty();
      std::string heading =
          check.check + " in " + check.arm + (check.expected ? "" : ", must not hold");
      heading += ": " + std::to_string(check.agree) + " as claimed";
      if (check.disagree > 0) heading += ", " + std::to_string(check.disagree) + " not";
      if (check.unknown > 0) heading += ", " + std::to_string(check.unknown) + " unknown";
      const std::string indent(7, ' ');
      const std::string line = Wrapped(indent, OneLine(heading), options_.width, indent).substr(7);
      out_ << (is_fine ? "  ok   " : Alarm("  >>   ")) << line << "\n";
      if (is_fine) {
        Line("formula", check.formula, 7);
      } else {
        const bool is_marked = Mark(check);
        for (const auto& [label, text] : FailureLines(check)) {
          const bool is_said = (label == "formula" && is_marked) || label == "margin";
          if (!is_said && label != "repeat") Line(label, text, 7);
        }
      }
      if (const std::string margin = MarginOf(check); !margin.empty()) {
        out_ << std::string(7, ' ') << Left("margin", 11) << margin << "\n";
      }
    }
  }

  // The claim in its file, with a caret, where the file still has it.
  bool Mark(const CheckResult& check) {
    const std::optional<std::string> text = ReadFile(check.file);
    if (!text || check.position.line <= 0) return false;
    std::istringstream lines(*text);
    std::string line;
    for (int number = 0; number < check.position.line; ++number) {
      if (!std::getline(lines, line)) return false;
    }
    out_ << Format({.file = check.file,
                    .position = check.position,
                    .message = check.failure_class.text(),
                    .hint = "",
                    .source_line = line},
                   options_.color);
    return true;
  }

  // Not wrapped: they are to be copied.
  void Commands() {
    out_ << "\n"
         << Bold("repeat") << "\n  trainwreck run " << ShellWord(OneLine(verdict_.case_name))
         << " --keep all\n";
    for (const CheckResult& check : verdict_.checks) {
      if (!check.rerun_command.empty()) out_ << "  " << OneLine(check.rerun_command) << "\n";
    }
  }

  const Verdict& verdict_;
  const std::map<std::string, KeptTrace>& runs_;
  const CaseViewOptions& options_;
  std::ostringstream out_;
};

}  // namespace

std::string CaseView(const Verdict& verdict, const std::map<std::string, KeptTrace>& runs,
                     const CaseViewOptions& options) {
  return View(verdict, runs, options).Text();
}

}  // namespace trainwreck
