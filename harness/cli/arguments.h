// The arguments of a verb. Each verb declares its own options and where their values go. Only
// arguments.cc knows of CLI11, which is slow to compile.
//
//   arguments.Positional("RUN", options.run, "Folder of the invocation, or latest").Required();
//   arguments.Option("--seeds", options.seeds, "Seeds per arm", "N").Between(1, 10000);
//   arguments.Flag("--full", options.full, "Never stop a run early");
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/session/options.h"

namespace trainwreck {

// A value that an option cannot take, said as a sentence: "'x' is no shard: say i/n".
struct BadValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A declared option, for further conditions on its value.
class DeclaredOption {
 public:
  explicit DeclaredOption(void* option) : option_(option) {}
  DeclaredOption& Between(int least, int most);  // ends included
  DeclaredOption& Between(double least, double most);
  DeclaredOption& Positive();
  DeclaredOption& OneOf(const std::vector<std::string>& words);
  DeclaredOption& Count(int values);  // exactly so many after one name
  DeclaredOption& Required();

 private:
  void* option_;  // CLI::Option
};

class VerbArguments {
 public:
  // `verb` is a CLI::App.
  VerbArguments(void* verb, std::string command_line)
      : verb_(verb), command_line_(std::move(command_line)) {}

  // `name` as "--seeds" or "-j,--cores"; `type` is what the help shows for the value. A value that
  // is not given stays as it is. An option with a vector may be repeated.
  DeclaredOption Option(const char* name, std::string& value, const char* doc, const char* type);
  DeclaredOption Option(const char* name, int& value, const char* doc, const char* type);
  DeclaredOption Option(const char* name, double& value, const char* doc, const char* type);
  DeclaredOption Option(const char* name, std::optional<int>& value, const char* doc,
                        const char* type);
  DeclaredOption Option(const char* name, std::optional<double>& value, const char* doc,
                        const char* type);
  DeclaredOption Option(const char* name, std::vector<std::string>& value, const char* doc,
                        const char* type);
  DeclaredOption Option(const char* name, std::vector<int>& value, const char* doc,
                        const char* type);
  DeclaredOption Positional(const char* name, std::string& value, const std::string& doc);
  DeclaredOption Positional(const char* name, std::vector<std::string>& values,
                            const std::string& doc);
  void Flag(const char* name, bool& value, const char* doc);
  void Flag(const char* name, const std::function<void()>& given, const char* doc);
  // `parse` takes the text and may throw BadValue.
  DeclaredOption Parsed(const char* name, const std::function<void(const std::string&)>& parse,
                        const char* doc, const char* type);
  DeclaredOption ParsedEach(const char* name,
                            const std::function<void(const std::vector<std::string>&)>& parse,
                            const char* doc, const char* type);
  // The value is what its word stands for.
  template <typename Enum>
  DeclaredOption Choice(const char* name, Enum& value, const std::map<std::string, Enum>& words,
                        const char* doc, const char* type) {
    std::vector<std::string> known;
    for (const auto& [word, meaning] : words) known.push_back(word);
    return Parsed(
               name, [&value, words](const std::string& word) { value = words.at(word); }, doc,
               type)
        .OneOf(known);
  }
  // Text below the options in the help.
  void Footer(const char* text);
  // Words after `--` go there; they are no options.
  void Rest(std::vector<std::string>& words) { rest_ = &words; }
  std::vector<std::string>* rest() const { return rest_; }

  // Options that several verbs have.
  void Common(CommonOptions& common);
  void Preflight(CommonOptions& common);
  void Selection(SelectionOptions& selection);
  void Shard(SelectionOptions& selection);
  void Cores(int& cores);
  void Set(std::vector<std::string>& set);
  void Seeds(int& seeds);
  void Isolation(bool& exec);
  void PatientArm(std::string& arm);
  void HistoryFile(std::string& file);
  // The option --report. `of_stored`: for a stored invocation, whose traces can be reported too.
  void Reports(std::vector<ReportRequest>& reports, bool of_stored = false);
  // What becomes of an invocation's verdicts: --require, --max-skips, --report, --no-html.
  void Results(std::vector<std::string>& require, std::optional<int>& max_skips,
               std::vector<ReportRequest>& reports, bool& html);

 private:
  void* verb_;
  std::string command_line_;
  std::vector<std::string>* rest_ = nullptr;
};

}  // namespace trainwreck
