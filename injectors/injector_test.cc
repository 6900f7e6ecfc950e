#include "injectors/injector.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

FaultInfo PokeInfo() {
  return {.name = "test.poke",
          .params = {{.name = "strength", .default_value = 2.0, .min = 1.0},
                     {.name = "where", .type = ValueType::kString}}};
}

class Poke : public Injector {
 public:
  using Injector::Injector;
  double strength() const { return param("strength").get<double>(); }
};

REGISTER_FAULT(PokeInfo, Poke);

FaultInfo AmendInfo() { return {.name = "test.amend", .amends = {{.key = "a", .value = 1}}}; }

const bool registered_amend = RegisterFault(AmendInfo(), nullptr);

std::string ErrorOf(const std::string& fault, std::map<std::string, Json> with) {
  try {
    FaultBench().Make(fault, std::move(with));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(MakeInjectors, FillsInDefaults) {
  FaultBench bench;
  const auto poke = bench.Make("test.poke", {{"where", "here"}});
  EXPECT_EQ(dynamic_cast<Poke&>(*poke).strength(), 2.0);
}

TEST(MakeInjectors, NamesWhatIsWrong) {
  EXPECT_EQ(ErrorOf("test.pole", {}), "fault `it`: there is no fault `test.pole`");
  EXPECT_EQ(
      ErrorOf("test.amend", {}),
      "fault `it`: `test.amend` changes the recipe, which is done before the plan is written");
  EXPECT_EQ(ErrorOf("test.poke", {}), "fault `it` (test.poke): parameter `where` must be given");
  EXPECT_EQ(ErrorOf("test.poke", {{"where", "here"}, {"how", 1}}),
            "fault `it` (test.poke): unknown parameter `how`");
  EXPECT_EQ(ErrorOf("test.poke", {{"where", 1}}),
            "fault `it` (test.poke): parameter `where`: must be a string");
  EXPECT_NE(ErrorOf("test.poke", {{"where", "here"}, {"strength", 0.5}}), "");
}

TEST(Injector, ActsWhenItsTriggerMatchesTheClock) {
  FaultBench bench(1, 2);
  const auto poke = bench.Make("test.poke", {{"where", "here"}},
                               {.from = 3, .to = 7, .every = 2, .ranks = {1}, .attempt = 0});
  std::vector<int> acted;
  for (bench.clock.step = 0; bench.clock.step < 10; ++bench.clock.step) {
    // Asking twice is no different from asking once.
    if (poke->Acts() && poke->Acts()) acted.push_back(bench.clock.step);
  }
  EXPECT_EQ(acted, (std::vector<int>{3, 5, 7}));
  EXPECT_TRUE(poke->ActsAt(5));
  bench.clock.attempt = 1;
  EXPECT_FALSE(poke->ActsAt(5));
}

TEST(Injector, ActsOnlyOnItsRanksAndInItsPhase) {
  FaultBench bench(0, 2);
  bench.clock.phase = "resume";
  EXPECT_FALSE(bench.Make("test.poke", {{"where", "x"}}, {.ranks = {1}})->Acts());
  EXPECT_FALSE(bench.Make("test.poke", {{"where", "x"}}, {.phase = "train"})->Acts());
  EXPECT_TRUE(bench.Make("test.poke", {{"where", "x"}}, {.phase = "resume"})->Acts());
}

TEST(Injector, FiredNamesTheScenariosFault) {
  FaultBench bench;
  bench.Make("test.poke", {{"where", "x"}})->Fired({{"before", 1}, {"after", 2}});
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0],
            Json({{"id", "it"}, {"fault", "test.poke"}, {"before", 1}, {"after", 2}}));
}

TEST(RegisterFaultDeathTest, RefusesMalformedFaults) {
  EXPECT_DEATH(RegisterFault(AmendInfo(), nullptr), "registered twice");
  EXPECT_DEATH(RegisterFault({.name = "nosite"}, nullptr), "site.fault");
  EXPECT_DEATH(RegisterFault({.name = "Test.x"}, nullptr), "lower case");
  EXPECT_DEATH(RegisterFault({.name = "test.nothing"}, nullptr), "neither");
}

}  // namespace
}  // namespace trainwreck
