#include "harness/session/preflight_causes.h"

#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "harness/report/text.h"
#include "harness/targets/launcher_report.h"
#include "harness/text/nearest.h"
#include "harness/yaml/fields.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownLines = 8;
constexpr std::size_t kShownBytes = 400;     // of a line
constexpr std::size_t kReadBytes = 1 << 20;  // of a program's output

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kReadBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::replace(text.begin(), text.end(), '\r', '\n');  // as progress bars end their lines
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string Shown(const std::string& line) { return CleanText(line.substr(0, kShownBytes)); }

std::vector<std::string> FirstOf(const std::vector<std::string>& lines) {
  std::vector<std::string> first;
  for (std::size_t i = 0; i < std::min(lines.size(), kShownLines); ++i) {
    first.push_back(Shown(lines[i]));
  }
  return first;
}

bool MatchesAny(const std::string& pattern, const std::vector<std::string>& lines) {
  const RE2 compiled(pattern, RE2::Quiet);
  return compiled.ok() && std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
           return RE2::PartialMatch(line, compiled);
         });
}

bool IsOnPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Why `program`, the first word of the command, could not be started from `folder`.
std::string StartHint(const std::string& program, const std::string& folder) {
  const fs::path path = fs::path(folder) / program;
  std::error_code error;
  if (program.find(' ') != std::string::npos) {
    return "each word is an entry of its own, such as [python3, train.py]";
  }
  if (program.find_first_of("~$") != std::string::npos) {
    return "no shell reads 'command', so '~' and '$' stand for themselves: write the path out";
  }
  if (fs::is_directory(path, error)) return "this is a folder: name the program in it";
  if (program.find('/') == std::string::npos) {
    if (program == "python" && IsOnPath("python3")) return "did you mean 'python3'?";
    if (fs::exists(path, error)) {
      return "write './" + program + "': a word without '/' is looked for on PATH";
    }
    return "it is not on PATH: write its path, or install it";
  }
  if (!fs::exists(path, error)) {
    std::vector<std::string> names;
    for (fs::directory_iterator at(path.parent_path(), error), end; !error && at != end;
         at.increment(error)) {
      names.push_back(at->path().filename().string());
    }
    const std::string nearest = NearestName(path.filename().string(), names);
    return (nearest.empty() ? "there is no such file: " : "did you mean '" + nearest + "'? ") +
           std::string("paths in 'command' are taken from its 'folder'");
  }
  if (access(path.c_str(), X_OK) != 0) {
    return "chmod +x " + program + ", or name its interpreter: [python3, " + program + "]";
  }
  const std::vector<std::string> lines = LinesOf(path.string());
  return lines.empty() || lines.front().rfind("#!", 0) != 0
             ? "it is no program of this machine, and has no '#!' line"
             : "its first line names an interpreter that is not there: " + Shown(lines.front());
}

struct WordsHint {
  const char* pattern;  // RE2, of the program's last words
  const char* hint;     // \1 is what the pattern's group took
};
constexpr WordsHint kWordsHints[] = {
    {R"((?:unrecognized arguments|[Nn]o such option|unrecognized option|unknown option|unknown flag|invalid option|not defined):?\s*(\S+))",
     R"(the program does not know \1, which 'command' in trainwreck.yaml gives it: see its --help)"},
    {R"(arguments are required: (.+))", R"(add \1 to 'command' in trainwreck.yaml)"},
    {R"(argument (\S+): invalid)", R"(the value that 'command' gives for \1 is not of its type)"},
    {R"(can't open file '([^']+)')",
     R"(\1 is not there: paths in 'command' are taken from its 'folder', by default that of trainwreck.yaml)"},
    {R"(No module named '?([\w.]+))",
     R"(this Python lacks \1: name the right interpreter in 'command', such as .venv/bin/python3)"},
    {R"((?s)(?:os\.py|<frozen os>).*KeyError: '(\w+)')",
     R"(the program wants the variable \1: set it under 'environment' of the target)"},
    {R"(environment variable (MASTER_\w+) expected, but not set)",
     R"(mpirun and srun set no \1: export MASTER_ADDR, the machine of rank 0, before trainwreck)"},
    {R"(FileNotFoundError: .*'([^']+)')",
     R"(\1 is not there: the program runs in its 'folder', by default that of trainwreck.yaml)"},
    {R"(PermissionError: .*'([^']+)')", R"(the program may not use \1)"},
};

std::string HintFromWords(const std::string& words) {
  for (const WordsHint& entry : kWordsHints) {
    std::string hint = entry.hint, group;
    if (!RE2::PartialMatch(words, entry.pattern, &group)) continue;
    if (const std::size_t at = hint.find("\\1"); at != std::string::npos) {
      hint.replace(at, 2, Shown(group));
    }
    return hint;
  }
  return "call it by hand to see more";
}

class Causes {
 public:
  Causes(const TargetSpec& spec, const Run& run, const RunResult& result)
      : spec_(spec), result_(result), plan_(run.plan), ranks_(run.ranks) {
    plan_.checkpoint_dir = result.folder + "/checkpoints";
    values_ = PlaceholderValues(spec, plan_, result.folder + "/work", spec.data, 0, ranks_);
    std::string why;
    if (const auto text = ReadSmallFile(spec.file, why)) text_ = *text;
    std::error_code error;
    const fs::path here = fs::path(spec.file).lexically_proximate(fs::current_path(error));
    file_ = here.empty() || *here.begin() == ".." ? spec.file : here.string();
  }

  std::vector<PreflightFinding> Find(const std::vector<MissingSignal>& missing) {
    const bool has_steps = !result_.trace.series.empty();
    if (!has_steps && IsBadEnd() && (spec_.level == 0 || BadExit() != nullptr)) {
      return {EndFinding()};
    }
    if (spec_.level > 0) {
      for (const MissingSignal& signal : missing) NoteUnwritten(signal);
    }
    std::vector<MissingSignal> of_hooks;
    for (const MissingSignal& signal : missing) {
      const bool has_source =
          std::any_of(spec_.sources.begin(), spec_.sources.end(),
                      [&](const SourceSpec& source) { return source.names.contains(signal.name); });
      if (!spec_.hooks.empty() && !has_source) of_hooks.push_back(signal);
    }
    if (!of_hooks.empty()) NoteHooks(of_hooks);
    for (const SourceSpec& source : spec_.sources) {
      std::vector<MissingSignal> of_source;
      for (const MissingSignal& signal : missing) {
        if (source.names.contains(signal.name)) of_source.push_back(signal);
      }
      if (!of_source.empty()) NoteSource(source, of_source);
    }
    return std::move(findings_);
  }

 private:
  bool IsBadEnd() const {
    return result_.end != RunEnd::kCompleted && result_.end != RunEnd::kDecided &&
           result_.end != RunEnd::kStalled && result_.end != RunEnd::kTimeout;
  }

  const RankExit* BadExit() const {
    const auto bad =
        std::find_if(result_.exits.begin(), result_.exits.end(),
                     [](const RankExit& exit) { return exit.code != 0 || exit.signal != 0; });
    return bad == result_.exits.end() ? nullptr : &*bad;
  }

  PreflightFinding At(const Position& position, std::string message, std::string hint,
                      bool is_error) const {
    Errors errors;
    errors.Add(errors.AddSource(file_, text_), position, std::move(message), std::move(hint));
    return {errors.Sorted().front(), {}, is_error};
  }

  std::string CommandLine() const {
    std::string line = "called in " + spec_.folder + " as:";
    for (const std::string& word : Invoke(spec_, plan_, values_).command) line += " " + word;
    return CleanText(line);
  }

  std::string OutputPath(const std::string& stream) const {
    return result_.folder + "/rank0." + stream;
  }

  // It ended, or was ended, before the first value of a signal.
  PreflightFinding EndFinding() const {
    const RankExit* bad = BadExit();
    std::string words = WordsBelowLauncher();
    if (words.empty() && bad != nullptr) words = bad->last_words;
    const std::size_t not_started = words.rfind("cannot start '");
    PreflightFinding finding;
    if (bad != nullptr && bad->code == 127 && not_started != std::string::npos) {
      const std::string program = Invoke(spec_, plan_, values_).command.front();
      finding = At(spec_.command_position,
                   "the program cannot be started: " + Shown(words.substr(not_started)),
                   StartHint(program, spec_.folder), true);
      return finding;
    }
    const std::string how = bad == nullptr ? "the program came to no step: " + result_.detail
                            : bad->signal != 0
                                ? "the program was ended by signal " + std::to_string(bad->signal)
                                : "the program ended with code " + std::to_string(bad->code);
    finding = At(spec_.command_position,
                 how + (bad == nullptr ? "" : " before any of its signals was read"),
                 HintFromWords(words), true);
    std::istringstream stream(words);
    for (std::string line; std::getline(stream, line);) finding.lines.push_back(Shown(line));
    if (finding.lines.size() > kShownLines) {
      finding.lines.erase(finding.lines.begin(),
                          finding.lines.end() - static_cast<std::ptrdiff_t>(kShownLines));
    }
    if (finding.lines.empty()) finding.lines = FirstOf(LinesOf(OutputPath("stdout")));
    finding.lines.push_back(CommandLine());
    return finding;
  }

  // What the rank that failed first has said, where a launcher reports it: the last words are those
  // of the report. It may be torchrun that a script of the command has called.
  std::string WordsBelowLauncher() const {
    std::string text, words;
    for (const std::string& line : LinesOf(OutputPath("stderr"))) text += line + "\n";
    const bool has_launcher = spec_.launcher != LauncherKind::kOwn;
    const auto failure =
        ReadLauncherReport(has_launcher ? spec_.launcher : LauncherKind::kTorchrun, text);
    if (!failure) return "";
    for (const std::string& line : LinesOfRank(text, *failure)) words += line + "\n";
    return words;
  }

  // As the program calls it.
  std::string NameOf(const MissingSignal& signal) const {
    const auto found = std::ranges::find(spec_.signals, signal.name, &SignalInfo::name);
    return found == spec_.signals.end() ? signal.name : OwnName(*found);
  }

  std::string NamesOf(const std::vector<MissingSignal>& missing) const {
    std::string names;
    for (const MissingSignal& signal : missing) {
      names += (names.empty() ? "'" : ", '") + NameOf(signal) + "'";
    }
    return names;
  }

  static bool IsAnyRequired(const std::vector<MissingSignal>& missing) {
    return std::any_of(missing.begin(), missing.end(),
                       [](const MissingSignal& signal) { return signal.is_required; });
  }

  bool IsPerModule(const std::string& signal) const {
    return std::any_of(spec_.signals.begin(), spec_.signals.end(), [&](const SignalInfo& info) {
      return info.name == signal && info.per_module;
    });
  }

  void NoteUnwritten(const MissingSignal& signal) {
    const auto at = spec_.signal_positions.find(signal.name);
    PreflightFinding finding =
        At(at == spec_.signal_positions.end() ? Position{} : at->second,
           "the program wrote no '" + NameOf(signal) + "' into its trace",
           "a target of level 1 writes lines such as {\"t\":\"step\",\"step\":0,\"" +
               NameOf(signal) + (IsPerModule(signal.name) ? "{layers.0}" : "") +
               "\":0.5} to rank0.jsonl in the folder $TRAINWRECK_TRACE",
           signal.is_required || result_.trace.series.empty());
    finding.lines = FirstOf(LinesOf(result_.folder + "/rank0.jsonl"));
    finding.lines.push_back(CommandLine());
    Add(std::move(finding));
  }

  void NoteHooks(const std::vector<MissingSignal>& missing) {
    PreflightFinding finding =
        At(spec_.command_position, "the hooks of 'adapter: python' saw no " + NamesOf(missing),
           "they see programs that train with an optimizer of torch, in a Python that this command "
           "starts with its environment; others need 'signals' and 'sources'",
           IsAnyRequired(missing) || result_.trace.series.empty());
    finding.lines.push_back(CommandLine());
    // What the hooks themselves have said.
    for (const std::string& line : LinesOf(OutputPath("stderr"))) {
      if (line.starts_with("trainwreck: ")) finding.lines.push_back(Shown(line));
    }
    for (const Event& event : result_.trace.events) {
      if (event.name == "hook_failed")
        finding.lines.push_back("a hook failed: " + Shown(event.fields.value("why", "")));
    }
    Add(std::move(finding));
  }

  void NoteSource(const SourceSpec& source, const std::vector<MissingSignal>& missing) {
    const bool is_pattern = source.kind == SourceKind::kStdout ||
                            source.kind == SourceKind::kStderr ||
                            source.kind == SourceKind::kOutput;
    PreflightFinding finding =
        is_pattern ? FromPattern(source, missing) : FromFile(source, missing);
    // A source that gave nothing at all is no question of sparse signals.
    finding.is_error = IsAnyRequired(missing) || result_.trace.series.empty();
    if (!finding.is_error) {
      finding.diagnostic.hint +=
          "; a signal that comes only now and then is 'sparse: true', one "
          "that may not come is 'optional: true'";
    }
    Add(std::move(finding));
  }

  void Add(PreflightFinding finding) {
    if (result_.end == RunEnd::kStalled || result_.end == RunEnd::kTimeout) {
      finding.diagnostic.hint += "; the run was ended: " + CleanText(result_.detail);
    }
    findings_.push_back(std::move(finding));
  }

  // What could not be read of this source as declared.
  std::string Complaint(const std::string& path) const {
    for (const Event& event : result_.trace.events) {
      if (event.name != "unreadable" || event.fields.value("source", "") != path) continue;
      return event.fields.value("why", "") + ": '" + Shown(event.fields.value("text", "")) + "'";
    }
    return "";
  }

  PreflightFinding FromPattern(const SourceSpec& source,
                               const std::vector<MissingSignal>& missing) const {
    const bool is_both = source.kind == SourceKind::kOutput;
    const bool is_stderr = source.kind == SourceKind::kStderr;
    const std::string stream = is_both ? "stdout or stderr" : is_stderr ? "stderr" : "stdout";
    const std::string other = is_stderr ? "stdout" : "stderr";
    std::vector<std::string> lines = LinesOf(OutputPath(is_stderr ? "stderr" : "stdout"));
    std::vector<std::string> others = LinesOf(OutputPath(other));
    if (is_both) {
      lines.insert(lines.end(), others.begin(), others.end());
      others.clear();
    }
    PreflightFinding finding;
    if (MatchesAny(source.pattern, lines)) {
      std::string complaint = Complaint(OutputPath(is_stderr ? "stderr" : "stdout"));
      if (is_both && complaint.empty()) complaint = Complaint(OutputPath("stderr"));
      finding = At(source.position,
                   "the pattern matches, but gives " + NamesOf(missing) + " no value" +
                       (complaint.empty() ? "" : ": " + complaint),
                   complaint.find("no step") != std::string::npos
                       ? "say 'first_step: 1' where the program counts from 1"
                       : "let the group take the number alone, such as (?P<loss>\\S+)",
                   true);
    } else if (lines.empty()) {
      finding = At(source.position, "the program printed nothing on " + stream,
                   others.empty() ? "where does it log? If its output is buffered, put "
                                    "'stdbuf', '-oL' before it in 'command'"
                                  : "it printed on " + other + ": write '" + other +
                                        ":' instead of '" + stream + ":'",
                   true);
      finding.lines = FirstOf(others);
    } else {
      finding = At(source.position,
                   "the pattern matches none of the " + std::to_string(lines.size()) +
                       (lines.size() == 1 ? " line" : " lines") + " that the program printed on " +
                       stream + "; it begins so:",
                   PatternHint(source.pattern, lines, others, other), true);
      finding.lines = FirstOf(lines);
    }
    finding.lines.push_back(CommandLine());
    return finding;
  }

  // What the pattern would match if it were a little different.
  static std::string PatternHint(const std::string& pattern, const std::vector<std::string>& lines,
                                 const std::vector<std::string>& others, const std::string& other) {
    if (MatchesAny(pattern, others))
      return "it matches lines on " + other + ": write '" + other + ":'";
    if (MatchesAny("(?i)" + pattern, lines)) {
      return "it matches when upper and lower case are the same: begin it with (?i)";
    }
    std::string loose = pattern;
    if (loose.rfind('^', 0) == 0) loose.erase(0, 1);
    if (!loose.empty() && loose.back() == '$') loose.pop_back();
    if (MatchesAny(loose, lines)) return "it matches without its '^' or '$'";
    std::vector<std::string> plain = lines;
    for (std::string& line : plain) RE2::GlobalReplace(&line, "\x1b\\[[0-9;]*m", "");
    if (MatchesAny(pattern, plain)) {
      return "the lines hold colour codes: set NO_COLOR under 'environment', or allow for them";
    }
    std::string spaced = pattern;
    RE2::GlobalReplace(&spaced, " +", "\\\\s*");
    if (MatchesAny(spaced, lines)) return "the blanks differ: write \\s* in place of a blank";
    return "write the pattern to fit one of these lines; in single quotes backslashes stand for "
           "themselves";
  }

  PreflightFinding FromFile(const SourceSpec& source,
                            const std::vector<MissingSignal>& missing) const {
    const std::string path = (fs::path(spec_.folder) / source.path.Expand(values_)).string();
    std::error_code error;
    PreflightFinding finding;
    if (!fs::exists(path, error)) {
      std::string written;
      for (fs::recursive_directory_iterator at(result_.folder + "/work", error), end;
           !error && at != end && written.size() < kShownBytes; at.increment(error)) {
        written += (written.empty() ? "" : ", ") + at->path().filename().string();
      }
      finding = At(source.position, "the program did not write " + Name(path),
                   written.empty() ? "it wrote nothing below {run.folder}: does 'command' say so?"
                                   : "below {run.folder} it wrote " + CleanText(written),
                   true);
    } else if (source.kind == SourceKind::kTensorBoard) {
      finding =
          At(source.position, "no event file below " + Name(path) + " has " + NamesOf(missing),
             "compare 'tags' with what TensorBoard shows; events come when the program "
             "flushes them",
             true);
    } else {
      const std::vector<std::string> lines = LinesOf(path);
      const std::string complaint = Complaint(path);
      finding = At(source.position,
                   Name(path) + " gives no value of " + NamesOf(missing) +
                       (complaint.empty() ? "" : ": " + complaint),
                   source.kind == SourceKind::kCsv ? "compare 'columns' and 'step' with the header"
                                                   : "compare 'fields' and 'step' with the lines",
                   true);
      finding.lines = FirstOf(lines);
    }
    finding.lines.push_back(CommandLine());
    return finding;
  }

  // As trainwreck.yaml calls it.
  std::string Name(const std::string& path) const {
    const std::string work = result_.folder + "/work";
    return "'" + (path.rfind(work, 0) == 0 ? "{run.folder}" + path.substr(work.size()) : path) +
           "'";
  }

  const TargetSpec& spec_;
  const RunResult& result_;
  Plan plan_;
  const int ranks_;
  std::map<std::string, std::string> values_;
  std::string text_, file_;
  std::vector<PreflightFinding> findings_;
};

}  // namespace

std::vector<std::string> PrintedLines(const RunResult& result, const std::string& stream) {
  return LinesOf(result.folder + "/rank0." + stream);
}

std::vector<PreflightFinding> FindCauses(const TargetSpec& spec, const Run& run,
                                         const RunResult& result,
                                         const std::vector<MissingSignal>& missing) {
  return Causes(spec, run, result).Find(missing);
}

}  // namespace trainwreck
