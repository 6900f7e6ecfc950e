#include "harness/report/html_page.h"

#include "harness/protocol/digest.h"
#include "harness/report/html_text.h"
#include "harness/text/clean_text.h"

namespace trainwreck {
namespace {

constexpr const char kStyle[] =
#include "harness/report/page/style.inc"
    ;
constexpr const char kScript[] =
#include "harness/report/page/script.inc"
    ;
constexpr const char kLicence[] =
#include "harness/report/page/licence.inc"
    ;

std::string Head(const std::string& title, const std::string& nonce) {
  return "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
         "content=\"width=device-width, initial-scale=1\"><meta "
         "http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
         "'unsafe-inline'; script-src 'nonce-" +
         nonce + "'; img-src data:\"><title>" + Html(title) + "</title><style>" + kStyle +
         "</style></head>\n";
}

// Names and texts as they are shown: a picture may be another program's.
Json Cleaned(const Json& json) {
  if (json.is_string()) return CleanText(json.get_ref<const std::string&>());
  if (!json.is_structured()) return json;
  if (json.is_array()) {
    Json cleaned = Json::array();
    for (const Json& value : json) cleaned.push_back(Cleaned(value));
    return cleaned;
  }
  Json cleaned = Json::object();
  for (const auto& [key, value] : json.items()) cleaned[CleanText(key)] = Cleaned(value);
  return cleaned;
}

}  // namespace

std::string PageText(const HtmlPage& page) {
  std::string foot = "trainwreck " + page.version;
  if (!page.source.empty()) foot += ". Numbers are those of " + page.source;
  const std::string body = "<body><header><h1>" + Html(page.title) + "</h1>" + page.header +
                           "</header><main>" + page.main + "</main><footer><p>" + Html(foot) +
                           ".</p><details><summary>Licence of dygraphs, the library that draws the "
                           "curves</summary><pre>" +
                           Html(kLicence) + "</pre></details></footer>" + page.data;
  // Only our own script has it: a text that got past the escaping would not run.
  const std::string nonce = DigestText(body);
  return Head(page.title, nonce) + body + "<script nonce=\"" + nonce + "\">" + kScript +
         "</script></body></html>\n";
}

std::string FilterForm(const std::string& kind,
                       const std::vector<std::pair<std::string, std::string>>& orders) {
  std::string html =
      "<form id=filter role=search hidden><label>Search <input id=search type=search "
      "placeholder=\"name, class, formula ( / )\"></label> <label>" +
      Html(kind) +
      " <select id=verdict><option value=\"\">all</option></select></label> <label>Sort by "
      "<select id=sort>";
  for (const auto& [value, text] : orders) {
    html += "<option value=" + value + ">" + Html(text) + "</option>";
  }
  return html + "</select></label> <output id=shown aria-live=polite></output></form>";
}

std::string DataScript(const std::string& id, const Json& json) {
  return "<script type=application/json id=" + id + ">" + JsonInScript(Cleaned(json)) +
         "</script>\n";
}

std::string Plot(const std::string& id, const std::string& label, const Json& spec,
                 std::string& data) {
  data += DataScript("data-" + id, spec);
  return "<figure class=plot id=" + id + " data-label=\"" + Html(label) + "\"><figcaption>" +
         Html(label) + "</figcaption></figure>";
}

}  // namespace trainwreck
