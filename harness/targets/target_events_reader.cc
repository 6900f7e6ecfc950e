// The events of a target of trainwreck.yaml.
#include <algorithm>
#include <utility>

#include "harness/targets/target_reader.h"

namespace trainwreck {
namespace {

// A program may say that it went on from a checkpoint, and from which step. All other events of the
// harness are its own alone.
bool IsOfTheHarness(const std::string& event) {
  return event != "resumed" &&
         std::any_of(AdapterEvents().begin(), AdapterEvents().end(),
                     [&](const EventInfo& info) { return info.name == event; });
}

}  // namespace

void TargetReader::ReadEvents(Fields& fields) {
  const YamlNode* events = fields.Take("events");
  if (!BelongsHere(events, "events")) return;
  if (spec_.level == 0 && !has_adapter_) {
    errors_.Add(*events, "no source gives events, so a target of level 0 takes no 'events'",
                kWritesItsTrace);
    return;
  }
  if (!CheckFilledMap(*events, "'events'", errors_, "such as {skipped: {fields: [why]}}")) {
    return;
  }
  for (std::size_t i = 0; i < events->keys.size(); ++i) {
    ReadEvent(events->keys[i], events->items[i]);
  }
}

void TargetReader::ReadEvent(const YamlNode& key, const YamlNode& node) {
  EventInfo info;
  info.name = key.text;
  CheckName(key, "the name of an event", errors_);
  if (IsOfTheHarness(key.text)) {
    errors_.Add(key, "the harness has the event '" + key.text + "' itself", "choose another name");
  }
  if (std::ranges::any_of(spec_.signals, [&](const SignalInfo& info) {
        return info.name == key.text || info.own_name == key.text;
      })) {
    errors_.Add(key, "'" + key.text + "' is a signal already", "choose another name");
  }
  Fields fields(node, "event '" + key.text + "'", errors_, "write " + key.text + ": {}");
  if (const YamlNode* list = fields.Take("fields")) {
    for (const YamlNode* item : ReadList(*list, "'fields'", errors_)) {
      if (CheckName(*item, "a field of an event", errors_)) info.fields.push_back(item->text);
    }
  }
  if (const YamlNode* value = fields.Take("on_demand")) {
    info.on_demand = ReadBool(*value, "'on_demand'", errors_).value_or(false);
  }
  if (const YamlNode* value = fields.Take("doc")) {
    info.doc = ReadText(*value, "'doc'", errors_).value_or("");
  }
  fields.RejectRest();
  spec_.events.push_back(std::move(info));
}

}  // namespace trainwreck
