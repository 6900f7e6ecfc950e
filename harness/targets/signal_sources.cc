#include "harness/targets/signal_sources.h"

#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "harness/protocol/late_bytes.h"
#include "harness/protocol/rank_files.h"
#include "harness/targets/globs.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kEveryOfAnOutput(2);

// The descriptors whose output a source reads.
std::vector<int> OutputsOf(SourceKind kind) {
  if (kind == SourceKind::kStdout) return {STDOUT_FILENO};
  if (kind == SourceKind::kStderr) return {STDERR_FILENO};
  if (kind == SourceKind::kOutput) return {STDOUT_FILENO, STDERR_FILENO};
  return {};
}

}  // namespace

bool StartsGuards(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "rank" && fs::path(command[i - 1]).filename() == "trainwreck") return true;
  }
  return false;
}

SignalSources::SignalSources(const TargetSpec& spec, const RankGuards& guards, int rank, int ranks,
                             Step step, Unreadable unreadable)
    : spec_(spec),
      guards_(guards),
      rank_(rank),
      ranks_(ranks),
      step_(std::move(step)),
      unreadable_(std::move(unreadable)) {}

const SignalSink& SignalSources::SinkOf(int rank) {
  SignalSink& sink = sinks_[rank];
  if (sink.step) return sink;
  sink.step = [this, rank](const StepValues& values) { step_(rank, values); };
  sink.unreadable = [this, rank](const std::string& source, const std::string& text,
                                 const std::string& why) { unreadable_(rank, source, text, why); };
  return sink;
}

// Wildcards are the target's file's own, not those of folders that stand for placeholders.
std::string SignalSources::PatternOf(const SourceSpec& source,
                                     const std::map<std::string, std::string>& values) const {
  std::map<std::string, std::string> escaped;
  for (const auto& [name, value] : values) escaped[name] = EscapeForGlob(value);
  return (fs::path(EscapeForGlob(spec_.folder)) / source.path.Expand(escaped)).string();
}

void SignalSources::Open(const std::map<std::string, std::string>& values,
                         const std::string& run_folder, bool resumes, bool of_guards) {
  const SignalSink& sink = SinkOf(rank_);
  for (const SourceSpec& source : spec_.sources) {
    if (!OutputsOf(source.kind).empty()) {
      OpenOutputs(source, run_folder, resumes, of_guards);
    } else if (source.kind == SourceKind::kTensorBoard) {
      readers_.push_back(MakeEventFileReader(source, source.path.Expand(values), resumes, sink));
    } else if (source.HasWildcards()) {
      readers_.push_back(MakeGlobReader(source, PatternOf(source, values), resumes, sink));
    } else {
      const fs::path path = fs::path(spec_.folder) / source.path.Expand(values);
      readers_.push_back(MakeLineReader(source, path.string(), resumes, sink));
    }
  }
}

void SignalSources::OpenOutputs(const SourceSpec& source, const std::string& run_folder,
                                bool resumes, bool of_guards) {
  const auto reader_of = [&](int rank, const std::string& folder, bool skip_existing) {
    std::vector<std::string> paths;
    for (const int fd : OutputsOf(source.kind)) paths.push_back(OutputFile(folder, rank, fd));
    return MakeLineReader(source, paths, skip_existing, SinkOf(rank));
  };
  if (!of_guards) return readers_.push_back(reader_of(rank_, run_folder, resumes));
  for (int rank = 0; rank < ranks_; ++rank) {  // the folder is this attempt's alone
    outputs_.push_back(reader_of(rank, guards_.folder(), /*skip_existing=*/false));
  }
}

// There may be many outputs, on a file system that machines share.
void SignalSources::Read(bool last) {
  for (const auto& reader : readers_) reader->Poll(last);
  if (!last && Clock::now() < next_outputs_) return;
  next_outputs_ = Clock::now() + outputs_.size() * kEveryOfAnOutput;
  for (const auto& reader : outputs_) reader->Poll(last);
}

void SignalSources::AwaitGuards() const {
  const auto give_up =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(guards_.pace().lost_after);
  for (const auto& [rank, guarded] : guards_.ranks()) {
    if (guarded.state != "ended") continue;
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      const std::string path = OutputFile(guards_.folder(), rank, fd);
      const std::int64_t bytes = guarded.output_bytes[static_cast<std::size_t>(fd - 1)];
      while (FileSize(path) < bytes && Clock::now() < give_up) {
        poll(nullptr, 0, static_cast<int>(kLatePause.count()));
      }
    }
  }
}

}  // namespace trainwreck
