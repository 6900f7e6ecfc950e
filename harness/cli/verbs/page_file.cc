#include "harness/cli/verbs/page_file.h"

#include <iostream>

#include "harness/pages/pages.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"

namespace trainwreck {

void DeclarePage(VerbArguments& arguments, std::string& path) {
  arguments.Option("--html", path, "Write a page with tables and charts", "FILE");
}

void CheckPage(const std::string& path) {
  if (!path.empty()) CheckWritable(path, "--html");
}

void WritePage(const std::string& path, const Json& report) {
  if (path.empty()) return;
  WriteWholeFile(path, PageOf(report, kVersion));
  std::cout << "# report: " << path << "\n";
}

}  // namespace trainwreck
