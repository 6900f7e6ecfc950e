// The words of a comparison (comparison.h) that the console's text, Markdown and the summary share.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/history/comparison.h"

namespace trainwreck {

inline constexpr std::size_t kMostUnknown = 12;  // in Markdown, and on the console unless verbose
inline constexpr std::size_t kMostCases = 20;

std::string Plural(int count, const std::string& noun);  // "2 verdicts"
std::string Describe(const Record& record);
std::string IntervalText(const std::optional<RatioInterval>& ratio);
const char* GateText(Gate gate);
std::string AnswerText(const MarginChange& change);
std::string ShiftText(const ShiftResult& result);
std::string NameOf(const MarginChange& change);  // "nan/x: 'learns' in control"
std::string UnitText(const MarginChange& change);
// Worst first: what is different, then what is unknown by its evidence, then the rest.
std::vector<const MarginChange*> Ordered(const Comparison& comparison);
std::string VerdictCounts(const Comparison& comparison);
std::string MarginCounts(const Comparison& comparison);
// "4 arms of 2 cases have other bits, 1 arm of 1 case ends otherwise"; empty: none do.
std::string ChangedArmsText(const Comparison& comparison);
std::string BitsText(const Comparison& comparison);
// A case a line: its name, and its arms.
std::vector<std::pair<std::string, std::string>> BitsByCase(const Comparison& comparison);
std::string CodeText(const Comparison& comparison);
std::string EnvironmentText(const Comparison& comparison);
// What belongs under the tables.
std::vector<std::string> Notes(const Comparison& comparison);

}  // namespace trainwreck
