// What options of training programs are for, as their names say: the usual ones have a role.
#pragma once

#include <string>
#include <vector>

namespace trainwreck {

// Besides the roles of the protocol.
inline constexpr const char* kStepsOption = "steps";
inline constexpr const char* kSeedOption = "seed";
inline constexpr const char* kRanksOption = "ranks";
inline constexpr const char* kFolderOption = "checkpoints";
inline constexpr const char* kLogFolderOption = "logs";

// "--trainer.max-steps" is trainer.max_steps.
std::string KeyName(const std::string& option);

// One of the words above, or a role of the protocol; empty: the name says none.
std::string RoleOfKey(const std::string& key);

// The roles of the protocol that have usual names.
std::vector<std::string> NamedRoles();

bool IsNumber(const std::string& text);
bool IsWhole(const std::string& text);  // without a sign

}  // namespace trainwreck
