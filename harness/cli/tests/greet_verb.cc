// trainwreck greet: what a new verb takes, which is this file. adding_a_verb_test links it.
#include <iostream>

#include "harness/cli/verb.h"

namespace trainwreck {
namespace {

struct GreetOptions {
  std::string name = "world";
};

int Greet(const GreetOptions& options) {
  std::cout << "hello " << options.name << "\n";
  return 0;
}

void Declare(VerbArguments& arguments, GreetOptions& options) {
  arguments.Option("--name", options.name, "Who is greeted", "NAME");
}

const VerbRegistration registration("greet", "Say hello", kKeeping + 9, Declare, Greet);

}  // namespace
}  // namespace trainwreck
