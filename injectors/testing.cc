#include "injectors/testing.h"

#include <gtest/gtest.h>

#include <utility>

namespace trainwreck {

std::unique_ptr<Injector> FaultBench::Make(const std::string& fault,
                                           std::map<std::string, Json> with, Trigger trigger) {
  const PlannedFault planned{
      .id = "it", .fault = fault, .with = std::move(with), .trigger = std::move(trigger)};
  const InjectorContext context{.clock = &clock,
                                .events = this,
                                .rank = rank_,
                                .world_size = world_size_,
                                .seed = seed_,
                                .recipe = &recipe,
                                .checkpoint_dir = checkpoint_dir};
  return std::move(MakeInjectors({planned}, context).at(0));
}

void FaultBench::Write(const std::string& name, Json fields) {
  EXPECT_EQ(name, "fired");
  EXPECT_EQ(fields.value("id", ""), "it");
  EXPECT_TRUE(FaultRegistry().contains(fields.value("fault", ""))) << fields;
  EXPECT_TRUE(fields.contains("before")) << fields;
  EXPECT_TRUE(fields.contains("after")) << fields;
  fired_.push_back(std::move(fields));
}

}  // namespace trainwreck
