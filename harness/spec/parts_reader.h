// The parts of a scenario's claim: faults, checks, remedies, decoys.
#pragma once

#include <map>
#include <string>

#include "harness/spec/reader.h"
#include "harness/yaml/fields.h"

namespace trainwreck {

void ReadFaults(const YamlNode& node, const TargetDescription& target, Errors& errors,
                Draft& draft);

// The given parameters of one fault, without defaults.
std::map<std::string, Json> ReadParameters(const YamlNode& node, const FaultInfo& info,
                                           Errors& errors);

// healthy, symptoms and quality.
void ReadChecks(Fields& fields, Errors& errors, Draft& draft);

void ReadRemedies(Fields& fields, const TargetDescription& target, Errors& errors, Draft& draft);
void ReadDecoys(Fields& fields, const TargetDescription& target, Errors& errors, Draft& draft);

// Where the bytes [from, to) of a formula stand in the file, as well as can be told.
// `keeps: all but NAME` or `[all but NAME, OTHER]`: what is left of the symptoms.
bool IsAllBut(const YamlNode& node);

Position PlaceInFormula(const YamlNode& node, std::size_t from, std::size_t to,
                        const Errors& errors);

}  // namespace trainwreck
