// A verb of the command line: one file under cli/verbs, which registers itself.
//
//   struct SchemaOptions {
//     CommonOptions common;
//   };
//   int PrintSchema(const SchemaOptions& options) { ... }
//   void Declare(VerbArguments& arguments, SchemaOptions& options) {
//     arguments.Common(options.common);
//   }
//   const VerbRegistration registration("schema", "Print the JSON Schema of scenario files",
//                                       kLooking, Declare, PrintSchema);
//
// A verb prints its results on stdout and what is wrong on stderr, and returns the exit status;
// UsageError and ConfigurationError (session.h) are for main to print.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/arguments.h"

namespace trainwreck {

struct Verb {
  std::string name;
  std::string summary;
  int place = 0;  // in the help
  // Declares the verb's options and returns the function that does its work, which is called once
  // the options are filled in.
  std::function<std::function<int()>(VerbArguments&)> declare;
  // The verb prints colours: it removes control characters from foreign text itself
  // (text/clean_text.h).
  bool prints_colors = false;
};

// All verbs, by place, then by name.
const std::vector<Verb>& Verbs();
void RegisterVerb(Verb verb);

// Where a verb stands in the help: verbs that people use first come first.
enum VerbPlace { kFirst = 10, kLooking = 20, kStored = 30, kSearching = 40, kKeeping = 50 };

class VerbRegistration {
 public:
  template <typename Options>
  VerbRegistration(const char* name, const char* summary, int place,
                   void (*declare)(VerbArguments&, Options&), int (*run)(const Options&),
                   bool prints_colors = false) {
    const auto bound = [declare, run](VerbArguments& arguments) -> std::function<int()> {
      auto options = std::make_shared<Options>();
      declare(arguments, *options);
      return [options, run] { return run(*options); };
    };
    RegisterVerb({name, summary, place, bound, prints_colors});
  }
};

struct ReadCommand {
  std::string verb;
  // Everything is printed already: help, version, or on stderr what is wrong with the command line.
  std::optional<int> status;
  std::function<int()> call;   // else
  bool prints_colors = false;  // as of Verb
};

// `words` without the program's name; `command_line` as it was typed.
ReadCommand ReadCommandLine(const std::vector<std::string>& words, const std::string& command_line);

// Reads recorded options of one verb; false when they are not valid. Prints nothing.
bool ReadOptions(const std::vector<std::string>& words,
                 const std::function<void(VerbArguments&)>& declare);

}  // namespace trainwreck
