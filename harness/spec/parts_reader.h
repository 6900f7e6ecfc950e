// The parts of a scenario's claim: faults, checks, remedies, decoys.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/spec/reader.h"
#include "harness/yaml/fields.h"

namespace trainwreck {

void ReadFaults(const YamlNode& node, const TargetDescription& target, Errors& errors,
                Draft& draft);

// The given parameters of one fault, without defaults.
std::map<std::string, Json> ReadParameters(const YamlNode& node, const FaultInfo& info,
                                           Errors& errors);

// Reads healthy, symptoms and quality.
void ReadChecks(Fields& fields, Errors& errors, Draft& draft);

void ReadRemedies(Fields& fields, const TargetDescription& target, Errors& errors, Draft& draft);
void ReadDecoys(Fields& fields, const TargetDescription& target, Errors& errors, Draft& draft);

// Reads one fault. `fields` are those of `node`; the caller reads the keys that are not the
// fault's.
InjectedFault ReadFault(const YamlNode& key, const YamlNode& node, const TargetDescription& target,
                        Fields& fields, Errors& errors);

// One check; empty when its formula could not be read.
std::optional<Check> ReadCheck(const YamlNode& key, const YamlNode& node, const std::string& path,
                               Errors& errors, Draft& draft);
std::optional<formula::Amount> ReadAmount(const YamlNode& node, Errors& errors);
std::vector<std::string> ReadWhen(Fields& fields, Errors& errors);

// Checks that no other arm has this name: names of arms are folders, and words on the command line.
void CheckArmName(const YamlNode& key, const Draft& draft, Errors& errors);

template <typename Part>
void SetPlace(const YamlNode& node, const Errors& errors, Part& part) {
  part.position = node.position;
  part.file = errors.SourceName(node.source);
}

// The place of a formula's bytes [from, to) in the file, as exactly as possible.
// `keeps: all but NAME` or `[all but NAME, OTHER]`: what is left of the symptoms.
bool IsAllBut(const YamlNode& node);

Position PlaceInFormula(const YamlNode& node, std::size_t from, std::size_t to,
                        const Errors& errors);

}  // namespace trainwreck
