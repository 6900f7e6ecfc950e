// trainwreck: the harness. Parses the command line and calls one verb.
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>

#include "harness/cli/clean_output.h"
#include "harness/cli/verb.h"
#include "harness/history/history.h"
#include "harness/process/interruption.h"
#include "harness/session/session.h"
#include "harness/targets/adapter.h"
#include "harness/text/clean_text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

// The first one ends the runs in order and lets the report be written, a second one ends at once:
// the ranks die with their spawn server, and that with us.
extern "C" void OnInterrupt(int number) {
  static volatile std::sig_atomic_t times = 0;
  times = times + 1;
  if (times > 1) _exit(kExitInterrupted);
  Interrupt(number);
}

void CatchSignals() {
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);  // `trainwreck list | head` is no reason to leave runs behind
  signal(SIGXFSZ, SIG_IGN);  // a file over `ulimit -f` is an error of its write, as a full disk is
}

// As it could be pasted into a shell.
std::string CommandLine(int argc, char** argv) {
  std::string line = "trainwreck";
  for (int i = 1; i < argc; ++i) line += " " + ShellWord(argv[i]);
  return line;
}

int Complain(const std::string& what, int status) {
  std::cerr << "trainwreck: " << CleanText(what) << "\n";
  return status;
}

int Call(const ReadCommand& command) {
  std::optional<CleanOutput> clean;
  if (!command.prints_colors) clean.emplace(std::cout);
  try {
    return command.call();
  } catch (const UsageError& error) {
    return Complain(error.what(), kExitUsage);
  } catch (const ConfigurationError& error) {
    return Complain(error.what(), kExitInvalid);
  } catch (const HistoryError& error) {  // damaged behind its first page, say
    return Complain(error.what(), kExitInvalid);
  } catch (const DatabaseError& error) {
    return Complain(std::string("the history cannot be used: ") + error.what(), kExitInvalid);
  } catch (const std::system_error& error) {  // a full disk, a folder that may not be written
    return Complain(error.what(), kExitInfrastructure);
  } catch (const std::exception& error) {
    return Complain(std::string("internal error: ") + error.what(), kExitInternal);
  }
}

}  // namespace
}  // namespace trainwreck

int main(int argc, char** argv) {
  // `trainwreck adapt FILE NAME [HOOKS] [--describe]` is no verb for people: it stands before a
  // program that does not speak our protocol, and is started as that program would be.
  if (argc >= 4 && std::string(argv[1]) == "adapt") {
    return trainwreck::RunAdapter(argv[2], argv[3], argv[argc - 1] == std::string("--describe"));
  }
  // Nor is this: it stands before a target whose recipe names a launcher.
  if (argc >= 2 && std::string(argv[1]) == "launch-ranks") {
    return trainwreck::RunLaunchedRanks({argv + 2, argv + argc});
  }
  const trainwreck::ReadCommand command =
      trainwreck::ReadCommandLine({argv + 1, argv + argc}, trainwreck::CommandLine(argc, argv));
  if (command.status) return *command.status;
  trainwreck::CatchSignals();
  return trainwreck::Call(command);
}
