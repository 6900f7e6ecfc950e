// trainwreck: the harness. Parses the command line and calls one verb.
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <system_error>

#include "harness/cli/arguments.h"
#include "harness/cli/session.h"
#include "harness/cli/verbs.h"
#include "harness/launch/launcher.h"
#include "harness/targets/adapter.h"

namespace trainwreck {
namespace {

// The first one ends the runs in order and lets the report be written, a second one ends at once:
// the ranks die with their spawn server, and that with us.
extern "C" void OnInterrupt(int) {
  static volatile std::sig_atomic_t times = 0;
  times = times + 1;
  if (times > 1) _exit(kExitInterrupted);
  Launcher::Interrupt();
}

void CatchSignals() {
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);  // `trainwreck list | head` is no reason to leave runs behind
}

// As it could be pasted into a shell.
std::string CommandLine(int argc, char** argv) {
  std::string line = "trainwreck";
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i], quoted = "'";
    bool plain = !word.empty() && word.find_first_not_of(
                                      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_-+=./,:@%") == std::string::npos;
    for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += " " + (plain ? word : quoted + "'");
  }
  return line;
}

int CallVerb(const Options& options) {
  static const std::map<std::string, int (*)(const Options&)> verbs = {
      {"run", RunVerb},         {"list", ListVerb},         {"validate", ValidateVerb},
      {"explain", ExplainVerb}, {"doctor", DoctorVerb},     {"check", CheckVerb},
      {"report", ReportVerb},   {"rerun", RerunVerb},       {"new", NewVerb},
      {"schema", SchemaVerb},   {"bisect", BisectVerb},     {"dose", DoseVerb},
      {"history", HistoryVerb}, {"baseline", BaselineVerb}, {"compare", CompareVerb},
      {"judge", JudgeVerb},     {"matrix", MatrixVerb},     {"checkup", CheckupVerb},
      {"lr-range", LrRangeVerb}};
  try {
    return verbs.at(options.verb)(options);
  } catch (const UsageError& error) {
    std::cerr << "trainwreck: " << error.what() << "\n";
    return kExitUsage;
  } catch (const ConfigurationError& error) {
    std::cerr << "trainwreck: " << error.what() << "\n";
    return kExitInvalid;
  } catch (const std::system_error& error) {  // a full disk, a folder that may not be written
    std::cerr << "trainwreck: " << error.what() << "\n";
    return kExitInfrastructure;
  } catch (const std::exception& error) {
    std::cerr << "trainwreck: internal error: " << error.what() << "\n";
    return kExitInternal;
  }
}

}  // namespace
}  // namespace trainwreck

int main(int argc, char** argv) {
  // `trainwreck adapt FILE NAME [--describe]` is no verb for people: it stands before a program
  // that does not speak our protocol, and is started as that program would be.
  if (argc >= 4 && std::string(argv[1]) == "adapt") {
    return trainwreck::RunAdapter(argv[2], argv[3],
                                  argc > 4 && argv[4] == std::string("--describe"));
  }
  trainwreck::Options options;
  if (auto status = trainwreck::ParseArguments(argc, argv, options)) return *status;
  options.command_line = trainwreck::CommandLine(argc, argv);
  trainwreck::CatchSignals();
  return trainwreck::CallVerb(options);
}
