// What stands on the wire of spawn.h: lines of JSON, and requests in them.
#include "harness/process/spawn.h"

namespace trainwreck {

bool LineBuffer::Next(std::string& line) {
  const std::size_t end = bytes_.find('\n', begin_);
  if (end == std::string::npos) {
    bytes_.erase(0, begin_);
    begin_ = 0;
    return false;
  }
  line.assign(bytes_, begin_, end - begin_);
  begin_ = end + 1;
  return true;
}

Json ToJson(const SpawnRequest& request) {
  Json json = {{"spawn", request.id},
               {"environment", request.environment},
               {"stdout", request.stdout_path},
               {"stderr", request.stderr_path}};
  if (!request.command.empty()) json["command"] = request.command;
  if (!request.folder.empty()) json["folder"] = request.folder;
  if (request.inherits_output) json["inherits_output"] = true;
  if (request.file_bytes > 0) json["file_bytes"] = request.file_bytes;
  return json;
}

SpawnRequest SpawnRequestFromJson(const Json& json) {
  SpawnRequest request;
  request.id = json.at("spawn").get<int>();
  request.command = json.value("command", std::vector<std::string>());
  request.environment = json.value("environment", std::map<std::string, std::string>());
  request.folder = json.value("folder", "");
  request.stdout_path = json.value("stdout", "");
  request.stderr_path = json.value("stderr", "");
  request.inherits_output = json.value("inherits_output", false);
  request.file_bytes = json.value("file_bytes", std::int64_t{0});
  return request;
}

}  // namespace trainwreck
