// The console report: one line per case as it finishes, a block per failure, a footer. People read
// it as a table and programs parse it: lines that begin with `#` are remarks, indented lines belong
// to the case above, all others are
//   VERDICT CLASS SECONDS MARGIN UNIT CASE
// separated by blanks, with `-` where there is nothing to say.
//
//   ConsoleReport console(std::cout, ConsoleOptions::ForStream(STDOUT_FILENO, ColorMode::kAuto));
//   console.Begin(info, cases, runs);
//   ... console.Progress(running, done, total); console.Finished(verdict); ...
//   console.End(verdicts, info, {"out/verdicts.json"});
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "harness/judge/verdict.h"
#include "harness/report/progress.h"
#include "harness/report/report.h"

namespace trainwreck {

enum class ColorMode { kAuto, kAlways, kNever };

struct ConsoleOptions {
  bool color = false;
  bool unicode = true;    // else sparklines of ASCII
  bool progress = false;  // a line that is overwritten: terminals only
  bool log = false;       // else a line now and then, when it takes long
  bool verbose = false;   // the arms' table of passing cases too
  int width = 100;        // columns of pictures and tables
  int window = -1;        // the terminal's descriptor: its width may change

  // The options that fit the terminal, NO_COLOR, TERM and the locale.
  static ConsoleOptions ForStream(int fd, ColorMode color);
};

class ConsoleReport {
 public:
  ConsoleReport(std::ostream& out, ConsoleOptions options);

  void Begin(const RunInfo& info, int cases, int runs);
  void Progress(int running, int done, int total);
  void Finished(const Verdict& verdict);
  // `files`: the reports that were written.
  void End(const std::vector<Verdict>& verdicts, const RunInfo& info,
           const std::vector<std::string>& files);

 private:
  void PrintFailures(const Verdict& verdict);
  void PrintArms(const Verdict& verdict);
  void PrintNotes(const Verdict& verdict, bool all);
  void PrintRoles(const std::vector<Verdict>& verdicts);
  void PrintInvariants(const std::vector<Verdict>& verdicts);
  std::string Paint(VerdictKind verdict, const std::string& text) const;

  std::ostream& out_;
  ConsoleOptions options_;
  ProgressLine progress_;
};

// The values of the lowest and the highest bar of sparklines.
struct SparkScale {
  double lo = 0;
  double hi = 1;
  bool log = false;
};
// Where a value stands between them: 0 to 1.
double ShareOf(double value, const SparkScale& scale);

// A scale for all of `series` together, so that arms can be compared by eye. It is logarithmic
// where values are positive and span a decade. Values above twice the start of a series get the
// highest bar: otherwise an explosion would flatten everything else.
SparkScale FitScale(const std::vector<const std::vector<double>*>& series);

// One character per column; non-finite values show as 'x'. A column shows the last of its values,
// or 'x' when one of them is not finite.
std::string Sparkline(const std::vector<double>& values, int width, bool unicode,
                      const SparkScale& scale);

// "+10 steps", "-0.31 octaves", "+inf": signed, three significant digits.
std::string FormatMargin(double margin, formula::Unit unit);

}  // namespace trainwreck
