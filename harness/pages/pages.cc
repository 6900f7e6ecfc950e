#include "harness/pages/pages.h"

#include <map>
#include <optional>

#include "harness/protocol/parse_json.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

std::map<std::string, PageKind>& Kinds() {
  static auto* kinds = new std::map<std::string, PageKind>();
  return *kinds;
}

std::string SchemaOf(const Json& report) {
  const auto schema = report.is_object() ? report.find("schema") : report.end();
  return schema != report.end() && schema->is_string() ? schema->get<std::string>() : "";
}

}  // namespace

PageRegistration::PageRegistration(PageKind kind) {
  const std::string schema = kind.schema;
  Kinds()[schema] = std::move(kind);
}

bool HasPage(const std::string& schema) { return Kinds().contains(schema); }

std::string PageOf(const Json& report, const std::string& version) {
  const std::string schema = SchemaOf(report);
  const auto kind = Kinds().find(schema);
  if (kind == Kinds().end()) {
    std::string known;
    for (const auto& [name, ignored] : Kinds()) known += (known.empty() ? "" : ", ") + name;
    throw PageError("the schema '" + schema + "' has no page; these have one: " + known);
  }
  HtmlPage page;
  page.version = version;
  try {
    kind->second.write(report, page);
  } catch (const Json::exception& error) {
    throw PageError("no report as " + schema + " has it: " + error.what());
  }
  return PageText(page);
}

Json ReadReport(const std::string& path) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text) throw PageError(path + " cannot be read");
  try {
    return ParseJson(*text);
  } catch (const std::exception& error) {
    throw PageError(path + ": " + error.what());
  }
}

}  // namespace trainwreck
