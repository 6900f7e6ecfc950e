// The JSON Schema of scenario files: what an editor can check and complete while one is written.
// What depends on several places at once (references, steps, formulas) only `trainwreck validate`
// knows.
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/recipe_view.h"
#include "harness/spec/defaults.h"
#include "harness/spec/fault_file.h"
#include "harness/spec/recipe_reader.h"
#include "harness/spec/scenario.h"
#include "harness/yaml/fields.h"

namespace trainwreck {
namespace {

constexpr char kName[] = "^[a-z][a-z0-9_]{0,63}$";

Json Text(const std::string& doc) {
  return {{"type", "string"}, {"minLength", 1}, {"description", doc}};
}

Json Integer(int min, const std::string& doc) {
  return {{"type", "integer"}, {"minimum", min}, {"description", doc}};
}

Json Flag(const std::string& doc) {
  return {{"type", "boolean"}, {"default", false}, {"description", doc}};
}

Json Number(const std::string& doc) { return {{"type", "number"}, {"description", doc}}; }

Json PositiveNumber(const std::string& doc) {
  return {{"type", "number"}, {"exclusiveMinimum", 0}, {"description", doc}};
}

// A list that is not empty, or one value in its place.
Json OneOrMore(const Json& element, const std::string& doc) {
  Json list = {{"type", "array"}, {"items", element}, {"minItems", 1}};
  return {{"anyOf", {element, list}}, {"description", doc}};
}

Json Texts(const std::string& doc) {
  return OneOrMore({{"type", "string"}, {"minLength", 1}}, doc);
}

Json Object(Json properties, const std::vector<std::string>& required, const std::string& doc) {
  Json object = {{"type", "object"},
                 {"properties", std::move(properties)},
                 {"additionalProperties", false},
                 {"description", doc}};
  if (!required.empty()) object["required"] = required;
  return object;
}

// Entries with names of the author's choice.
Json NamedEntries(const Json& entry, const std::string& doc) {
  return {{"type", "object"},
          {"patternProperties", {{kName, entry}}},
          {"additionalProperties", false},
          {"minProperties", 1},
          {"description", doc}};
}

Json ValueSchema(const ParamInfo& info) {
  Json schema = Json::object();
  switch (info.type) {
    case ValueType::kBool:
      schema["type"] = "boolean";
      break;
    case ValueType::kInt:
    case ValueType::kIntList:
      schema["type"] = "integer";
      break;
    case ValueType::kNumber:
      schema["type"] = "number";
      break;
    case ValueType::kString:
    case ValueType::kStringList:
      // Words that YAML takes for something else (a date, a number) are text here all the same.
      schema["type"] = {"string", "number", "boolean"};
      break;
  }
  if (info.min) schema["minimum"] = *info.min;
  if (info.max) schema["maximum"] = *info.max;
  if (!info.choices.empty()) schema = {{"enum", info.choices}};
  const bool is_list = info.type == ValueType::kStringList || info.type == ValueType::kIntList;
  if (is_list) schema = OneOrMore(schema, "");
  std::string doc = info.doc;
  if (!info.unit.empty()) doc += " [" + info.unit + "]";
  schema["description"] = doc;
  if (!info.default_value.is_null()) schema["default"] = info.default_value;
  return schema;
}

// Recipe keys, dotted and nested; `leaf` gives the schema of one key.
template <typename LeafFunction>
Json KeysSchema(const TargetDescription& target, const std::string& prefix, const std::string& doc,
                LeafFunction leaf) {
  Json properties = Json::object();
  for (const ParamInfo& info : target.recipe) {
    if (info.name.rfind(prefix, 0) != 0) continue;
    const std::string rest = info.name.substr(prefix.size());
    Json schema = leaf(info);
    if (schema.is_null()) continue;
    const std::size_t dot = rest.find('.');
    if (dot != std::string::npos) {
      const std::string section = rest.substr(0, dot);
      if (!properties.contains(section)) {
        properties[section] = KeysSchema(target, prefix + section + ".", "", leaf);
      }
    }
    properties[rest] = std::move(schema);
  }
  Json object = Object(std::move(properties), {}, doc);
  object["minProperties"] = 1;
  return object;
}

// The same, and each key that a role stands for by the name of that role, too.
template <typename LeafFunction>
Json RecipeSchema(TargetDescription target, const std::string& doc, LeafFunction leaf) {
  for (const std::string& role : KeyRoleNames()) {
    const ParamInfo* key = ResolveKey(target, kRolePrefix + role);
    if (key == nullptr) continue;
    ParamInfo named = *key;
    named.name = kRolePrefix + role;
    target.recipe.push_back(std::move(named));
  }
  return KeysSchema(target, "", doc, leaf);
}

Json TriggerProperties() {
  return {
      {"at", Integer(0, "The one step at which the fault acts.")},
      {"from", Integer(0, "The first step at which it acts.")},
      {"to", Integer(0, "The last step at which it acts.")},
      {"every", Integer(1, "Only every so many steps, counted from `from`.")},
      {"ranks", OneOrMore({{"type", "integer"}, {"minimum", 0}}, "Only on these ranks.")},
      {"phase", Text("Only in this phase.")},
      {"attempt", Integer(0, "Only in this attempt: 0 before any restart.")},
      {"probability",
       {{"type", "number"},
        {"exclusiveMinimum", 0},
        {"maximum", 1},
        {"description", "Drawn at each step from the run's seed."}}},
  };
}

// `$strength` may stand for a number: of a text only the pattern counts, of a number the bounds.
Json OrStrength(Json schema) {
  const Json type = schema.value("type", Json());
  if (type != "integer" && type != "number") return schema;
  schema["type"] = {type, "string"};
  schema["pattern"] = "^([-+.0-9eE]+ / )?\\$strength$";
  return schema;
}

// Parameters without default may also come from the matrix or by `extends`, so none is required.
Json ParametersSchema(const FaultInfo& info) {
  Json properties = Json::object();
  for (const ParamInfo& param : info.params)
    properties[param.name] = OrStrength(ValueSchema(param));
  Json object = Object(std::move(properties), {}, info.doc);
  object["minProperties"] = 1;
  return object;
}

// One branch per fault, so that an editor offers just its parameters. `beside`: what else stands in
// its map.
Json FaultSchema(const TargetDescription& target, const Json& beside = Json::object()) {
  Json names = Json::array();
  Json branches = Json::array();
  for (const FaultInfo& info : target.faults) {
    names.push_back(info.name);
    Json properties = info.has_trigger ? TriggerProperties() : Json::object();
    properties["fault"] = {{"const", info.name}, {"description", info.doc}};
    properties["with"] = ParametersSchema(info);
    properties.update(beside);
    branches.push_back(
        {{"if", {{"required", {"fault"}}, {"properties", {{"fault", {{"const", info.name}}}}}}},
         {"then", Object(std::move(properties), {"fault"}, info.doc)}});
  }
  Json schema = {{"type", "object"},
                 {"properties",
                  {{"fault", {{"enum", names}, {"description", "Which fault, as site.fault."}}}}}};
  if (!branches.empty()) schema["allOf"] = branches;
  return schema;
}

Json CheckSchema() {
  Json map = Object({{"assert", Text("The formula.")},
                     {"min_margin",
                      {{"type", {"string", "number"}},
                       {"description", "How clearly it must hold: 10 steps, 1 octave, 0.2."}}},
                     {"reason", Text("Why a min_margin below 0.1 is enough.")},
                     {"when", Texts("Globs of the points where it is checked.")}},
                    {}, "A formula with its conditions.");
  return {{"anyOf", {Text("A formula."), map}}};
}

Json RemedySchema(const Json& set, const Json& scale);
Json DecoySchema(const Json& set, const Json& scale);
Json TwinSchema(const Json& set, const Json& scale, const TargetDescription& target);
Json AgreementSchema();
Json BugSchema(const TargetDescription& target);

Json MatrixSchema(const Json& set, const Json& scale, const TargetDescription& target) {
  Json with = {{"type", "object"},
               {"additionalProperties", {{"type", "object"}}},
               {"minProperties", 1},
               {"description", "Parameters of faults at this point: {FAULT_ID: {NAME: VALUE}}."}};
  Json point =
      Object({{"set", set},
              {"scale", scale},
              {"with", with},
              {"healthy", NamedEntries(CheckSchema(), "Of this point alone.")},
              {"symptoms", NamedEntries(CheckSchema(), "Of this point alone.")},
              {"remedies", NamedEntries(RemedySchema(set, scale), "Of this point alone.")},
              {"decoys", NamedEntries(DecoySchema(set, scale), "Of this point alone.")},
              {"twins", NamedEntries(TwinSchema(set, scale, target), "Of this point alone.")},
              {"agree", NamedEntries(AgreementSchema(), "Of this point alone.")},
              {"must_notice", NamedEntries(BugSchema(target), "Of this point alone.")}},
             {}, "What is different at this point.");
  Json axis = NamedEntries(point, "The points of one axis.");
  axis["patternProperties"] = {{"^[a-z][a-z0-9_-]{0,63}$", point}};
  return {{"type", "object"},
          {"properties",
           {{"exclude",
             {{"type", "array"},
              {"minItems", 1},
              {"items",
               {{"type", "object"},
                {"minProperties", 1},
                {"additionalProperties", {{"type", "string"}}}}},
              {"description", "Combinations of points to leave out: [{AXIS: POINT, ...}]."}}}}},
          {"patternProperties", {{"^(?!exclude$)[a-z][a-z0-9_]{0,63}$", axis}}},
          {"additionalProperties", false},
          {"minProperties", 1},
          {"description", "Named points; each gets a verdict of its own."}};
}

Json ArmProperties(const Json& set, const Json& scale) {
  return {{"set", set},
          {"scale", scale},
          {"when", Texts("Globs of the points where this arm runs.")},
          {"note", Text("For the reader of the report.")}};
}

Json RemedySchema(const Json& set, const Json& scale) {
  Json properties = ArmProperties(set, scale);
  properties["resolves"] =
      Texts("Names of the symptoms that go away, or all but NAME; all when left out.");
  properties["waives"] = Texts("`quality` or names of healthy checks that need not hold.");
  properties["kind"] = {{"enum", {"correct", "mitigate", "undo"}},
                        {"description",
                         "Takes the cause away, only limits the damage, or only takes the fault "
                         "out: shown, not run."}};
  return Object(std::move(properties), {}, "A prescribed fix; the fault stays in.");
}

Json DecoySchema(const Json& set, const Json& scale) {
  Json properties = ArmProperties(set, scale);
  properties["keeps"] =
      Texts("Names of the symptoms that must stay, or all but NAME; all when left out.");
  return Object(std::move(properties), {}, "A popular fix that must not help.");
}

Json SeedsSchema() {
  return {{"anyOf",
           {Integer(1, "So many seeds, which all must agree."),
            Object({{"count", Integer(1, "Seeds to run.")},
                    {"require", Integer(1, "How many of them must agree.")},
                    {"repeat", {{"type", "boolean"}, {"default", false}}}},
                   {}, "`require`: so many agree. `repeat`: all runs have one seed.")}},
          {"default", 5},
          {"description", "Each arm runs once per seed."}};
}

Json StrengthSchema() {
  const Json any =
      PositiveNumber("Without a calibration; the weakest and strongest it may choose.");
  return Object({{"default", any}, {"from", any}, {"to", any}}, {}, "What $strength stands for.");
}

Json ExpectSchema() {
  Json verdicts = {{"enum", VerdictNames()}};
  Json map = Object({{"verdict", verdicts},
                     {"class", Text("The class of that verdict, such as symptom_absent.")},
                     {"reason", Text("Why this limit is known and accepted.")}},
                    {"verdict"}, "A known limit.");
  return {{"anyOf", {verdicts, map}}, {"description", "The verdict that is expected."}};
}

Json RequiresSchema() {
  Json object =
      Object({{"ranks", Integer(1, "Processes; follows from the recipe when left out.")},
              {"devices", OneOrMore({{"enum", {"cpu", "cuda"}}}, "Devices of the machine.")},
              {"features", Texts("Features of the target, as `trainwreck doctor` shows them.")},
              {"memory",
               {{"type", "string"},
                {"pattern", "^[0-9.]+ *[KMGT]iB$"},
                {"description", "Main memory of the machine: 4GiB."}}}},
             {}, "What must be there; else the scenario is skipped, loudly.");
  object["minProperties"] = 1;
  return object;
}

Json BudgetSchema() {
  Json object = Object(
      {{"seconds", PositiveNumber("Wall clock of one run, with its phases and restarts.")},
       {"stall_seconds", PositiveNumber("Without progress of any rank; then the run is ended.")}},
      {}, "What one run may use.");
  object["minProperties"] = 1;
  return object;
}

Json PhasesSchema() {
  return {{"type", "array"},
          {"minItems", 1},
          {"items", Object({{"name", {{"type", "string"}, {"pattern", kName}}},
                            {"until", Integer(1, "Optimizer steps done when this phase ends.")},
                            {"shared", Flag("Of the first: all arms have control's.")}},
                           {"name"}, "One process start to its end.")},
          {"description", "Parts of a run; each but the first resumes from a checkpoint."}};
}

Json TwinSchema(const Json& set, const Json& scale, const TargetDescription& target) {
  Json properties = ArmProperties(set, scale);
  properties["phases"] = PhasesSchema();
  properties["waives"] = Texts("Invariants of invariants.yaml that need not hold.");
  const Json with_fault = FaultSchema(target, properties);
  return {{"if", {{"required", {"fault"}}}},
          {"then", with_fault},
          {"else", Object(std::move(properties), {}, "A change that must not matter.")}};
}

Json AgreementSchema() {
  Json schema = CheckSchema();
  schema["anyOf"].push_back(
      Object({{"of", Texts("Signals: grad_norm, \"grad_norm{*}\".")},
              {"within",
               {{"anyOf",
                 {{{"enum", {"rounding", "bitwise"}}},
                  {{"type", "number"}, {"exclusiveMinimum", 0}, {"exclusiveMaximum", 1}}}},
                {"description",
                 "What rounding alone does (measured), nothing, or a share of control's value."}}},
              {"min_margin", Text("How clearly; 1 octave when left out.")},
              {"when", Texts("Globs of the points where it is checked.")}},
             {"of", "within"}, "In what a twin equals control, and how closely."));
  return schema;
}

// A fault that `agree` must see.
Json BugSchema(const TargetDescription& target) {
  return FaultSchema(target,
                     {{"in", Texts("Names of the twins that must show it; all when left out.")},
                      {"only_in_twins", Flag("Control is compared as it is, without the fault.")},
                      {"when", Texts("Globs of the points where it is tried.")},
                      {"note", Text("For the reader of the report.")}});
}

// `$factor` may stand for any value.
Json OrReference(Json schema) {
  const std::string doc = schema.value("description", "");
  schema.erase("default");
  return {{"anyOf",
           {{{"type", "string"}, {"pattern", "^\\$[a-z][a-z0-9_]{0,63}$"}}, std::move(schema)}},
          {"description", doc + " `$NAME`: what the scenario gives the parameter."}};
}

Json ParameterSchema() {
  const Json any = {{"type", {"boolean", "number", "string", "array"}}};
  Json properties = {
      {"type", {{"enum", {"bool", "int", "number", "string", "strings", "ints"}}}},
      {"default", any},
      {"min", Number("The least value.")},
      {"max", Number("The largest value.")},
      {"choices", Texts("The values of a text.")},
      {"unit", Text("Of a number.")},
      {"doc", Text("What it is.")},
  };
  properties["default"]["description"] = "Without one, each scenario must give it.";
  return Object(std::move(properties), {"type"}, "What a scenario may say with `with`.");
}

}  // namespace

Json FaultFileSchema(const TargetDescription& target) {
  const auto value_of = [](const ParamInfo& info) { return OrReference(ValueSchema(info)); };
  const auto factor_of = [](const ParamInfo& info) -> Json {
    return IsNumeric(info.type) ? OrReference(Number("Factor. " + info.doc)) : Json();
  };
  Json needs = Object({{"ranks", Integer(1, "Processes that a run must have.")},
                       {"features", Texts("Features of the target.")}},
                      {}, "What must be there; else the scenario is skipped.");
  needs["minProperties"] = 1;
  Json schema = Object(
      {
          {"apiVersion", {{"const", kApiVersion}}},
          {"kind", {{"const", "Fault"}}},
          {"name",
           {{"type", "string"},
            {"pattern", "^[a-z][a-z0-9_]*\\.[a-z][a-z0-9_]*$"},
            {"description", "What `inject` calls it: SITE.NAME."}}},
          {"summary", Text("What it does, in one sentence.")},
          {"parameters", NamedEntries(ParameterSchema(), "What scenarios may choose.")},
          {"set", RecipeSchema(target, "Recipe keys and their new values.", value_of)},
          {"scale", RecipeSchema(target, "Recipe keys and their factors.", factor_of)},
          {"requires", needs},
      },
      {"apiVersion", "kind", "name", "summary"}, "A fault that changes the recipe.");
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["title"] = "trainwreck fault";
  schema["patternProperties"] = {{"^x-", {{"description", "A note; not read."}}}};
  schema["anyOf"] = {{{"required", {"set"}}}, {{"required", {"scale"}}}};
  return schema;
}

Json ScenarioSchema(const TargetDescription& target) {
  const auto value_of = [](const ParamInfo& info) { return OrStrength(ValueSchema(info)); };
  const auto factor_of = [](const ParamInfo& info) -> Json {
    return IsNumeric(info.type) ? OrStrength(Number("Factor. " + info.doc)) : Json();
  };
  const Json set = RecipeSchema(target, "Recipe keys and their new values.", value_of);
  const Json scale = RecipeSchema(target, "Recipe keys and their factors.", factor_of);
  Json properties = {
      {"apiVersion", {{"const", kApiVersion}}},
      {"kind", {{"const", "Scenario"}}},
      {"name",
       {{"type", "string"},
        {"pattern", "^[a-z0-9_-]+(/[a-z0-9_-]+)*$"},
        {"description", "The file's path under the folder of the scenarios, without .yaml."}}},
      {"title", Text("One sentence: what breaks, and how it shows.")},
      {"sources", Texts("Where the claim comes from.")},
      {"tags", Texts("For `trainwreck run -t TAG`.")},
      {"extends", Text("A scenario to start from, as its path under the folder of the scenarios.")},
      {"strength", StrengthSchema()},
      {"recipe", RecipeSchema(target, "The healthy run, over the target's defaults.", value_of)},
      {"matrix", MatrixSchema(set, scale, target)},
      {"seeds", SeedsSchema()},
      {"phases", PhasesSchema()},
      {"inject", NamedEntries(FaultSchema(target), "The faults.")},
      {"healthy", NamedEntries(CheckSchema(), "Hold in control and in every remedy.")},
      {"symptoms", NamedEntries(CheckSchema(), "Hold with the fault, not without it.")},
      {"breaks", Texts("Invariants of invariants.yaml that do not hold with the fault.")},
      {"remedies", NamedEntries(RemedySchema(set, scale), "Prescribed fixes.")},
      {"no_remedy", Text("Why there is no remedy, or none that is more than an undo.")},
      {"decoys", NamedEntries(DecoySchema(set, scale), "Popular fixes that must not help.")},
      {"quality", CheckSchema()},
      {"twins", NamedEntries(TwinSchema(set, scale, target), "Changes that must not matter.")},
      {"agree", NamedEntries(AgreementSchema(), "In what a twin equals control.")},
      {"must_notice", NamedEntries(BugSchema(target), "Faults that `agree` has to see.")},
      {"reference", Flag("Adds an uninterrupted healthy run, which formulas call `reference`.")},
      {"expect", ExpectSchema()},
      {"reason", Text("Why the expected limit is known and accepted.")},
      {"requires", RequiresSchema()},
      {"budget", BudgetSchema()},
  };
  properties["quality"]["description"] = "How good a remedy's run must be, unless it waives this.";
  Json schema = Object(std::move(properties), {"title"},
                       "What breaks a training run, how it shows, and what helps.");
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["title"] = "trainwreck scenario";
  schema["patternProperties"] = {{"^x-", {{"description", "A note; not read."}}}};
  // All this a scenario may also take over by `extends`; apiVersion and kind from defaults.yaml.
  const auto entries_need = [](const char* key) -> Json {
    return {{"patternProperties", {{kName, {{"required", {key}}}}}}};
  };
  schema["if"] = {{"required", {"extends"}}};
  const auto has = [](std::initializer_list<const char*> keys) -> Json {
    return {{"required", std::vector<std::string>(keys.begin(), keys.end())}};
  };
  schema["else"] = {
      {"anyOf",
       {has({"inject", "symptoms"}), has({"inject", "breaks"}), has({"inject", "matrix"}),
        has({"twins", "agree", "must_notice"}), has({"twins", "matrix"})}},
      {"properties",
       {{"inject", entries_need("fault")},
        {"must_notice", entries_need("fault")},
        {"healthy", entries_need("assert")},
        {"symptoms", entries_need("assert")},
        {"quality", {{"required", {"assert"}}}}}}};
  return schema;
}

Json DefaultsSchema(const TargetDescription& target) {
  const Json scenario = ScenarioSchema(target);
  Json properties = Json::object();
  for (const std::string& key : DefaultsKeys()) properties[key] = scenario["properties"][key];
  Json schema = Object(std::move(properties), {}, "What the scenarios of a folder have in common.");
  schema["$schema"] = scenario["$schema"];
  schema["title"] = "trainwreck defaults of a folder";
  schema["patternProperties"] = scenario["patternProperties"];
  return schema;
}

}  // namespace trainwreck
