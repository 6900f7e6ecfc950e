#include "harness/inspect/layer_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trainwreck {
namespace layer_table_test {

RunTrace TraceWith(const std::map<std::string, double>& values, int step = 3, int rank = 0) {
  RunTrace trace;
  trace.planned_steps = step + 1;
  for (const auto& [signal, value] : values) trace.series[{signal, rank}].Set(step, value);
  return trace;
}

std::vector<std::string> NamesOf(const LayerTable& table) {
  std::vector<std::string> names;
  for (const LayerRow& row : table.rows) names.push_back(row.module);
  return names;
}

TEST(LayerTable, PutsParametersToTheirModulesAndAddsTheirNormsUp) {
  const LayerTable table = LayersAt(TraceWith({{"param_norm{fc.weight}", 3},
                                               {"param_norm{fc.bias}", 4},
                                               {"grad_norm{fc.weight}", 0.5},
                                               {"update_norm{fc.weight}", 0.05},
                                               {"act_mean{fc}", -0.25},
                                               {"act_std{fc}", 1.5},
                                               {"act_zero_share{fc}", 0.75},
                                               {"act_saturated_share{fc}", 0.125},
                                               {"loss", 2}}),
                                    0, 3);
  ASSERT_EQ(table.rows.size(), 1u);
  const LayerRow& row = table.rows[0];
  EXPECT_EQ(row.module, "fc");
  EXPECT_EQ(row.tensors, 2);
  EXPECT_DOUBLE_EQ(row.param_norm.value(), 5);
  EXPECT_DOUBLE_EQ(row.grad_norm.value(), 0.5);
  EXPECT_DOUBLE_EQ(row.update_share().value(), 0.01);
  EXPECT_DOUBLE_EQ(row.act_mean.value(), -0.25);
  EXPECT_DOUBLE_EQ(row.act_std.value(), 1.5);
  EXPECT_DOUBLE_EQ(row.dead.value(), 0.75);
  EXPECT_DOUBLE_EQ(row.saturated.value(), 0.125);
  EXPECT_EQ(table.missing, std::vector<std::string>({"act_nonfinite", "grad_nonfinite",
                                                     "param_nonfinite", "update_nonfinite"}));
}

TEST(LayerTable, SaysWhatIsNotFiniteAndWhatIsNotRecorded) {
  const LayerTable table = LayersAt(TraceWith({{"act_nonfinite{fc}", 3},
                                               {"grad_nonfinite{fc.weight}", 5},
                                               {"grad_nonfinite{fc.bias}", 2},
                                               {"param_nonfinite{fc.weight}", 0},
                                               {"grad_norm{fc.weight}", NAN}}),
                                    0, 3);
  ASSERT_EQ(table.rows.size(), 1u);
  const std::map<std::string, double> expected = {{"act", 3}, {"grad", 7}};
  EXPECT_EQ(table.rows[0].nonfinite, expected);
  EXPECT_TRUE(std::isnan(table.rows[0].grad_norm.value()));
  EXPECT_FALSE(table.rows[0].param_norm);
  EXPECT_FALSE(table.rows[0].update_share());
  EXPECT_EQ(table.missing.front(), "param_norm");
  EXPECT_EQ(ToJson(table)["rows"][0]["grad_norm"], "nan");
}

TEST(LayerTable, CountsNumbersInNames) {
  const LayerTable table = LayersAt(TraceWith({{"act_std{blocks.10.fc}", 1},
                                               {"act_std{blocks.2.fc}", 1},
                                               {"act_std{blocks.2}", 1},
                                               {"act_std{head}", 1},
                                               {"param_norm{scale}", 1}}),
                                    0, 3);
  EXPECT_EQ(NamesOf(table),
            std::vector<std::string>({"blocks.2", "blocks.2.fc", "blocks.10.fc", "head", "scale"}));
}

TEST(LayerTable, TakesTheLastStepThatHasLayersOfTheRank) {
  RunTrace trace = TraceWith({{"act_std{fc}", 1}}, 3);
  trace.series[{"act_std{fc}", 0}].Set(5, 7);
  trace.series[{"act_std{fc}", 1}].Set(8, 9);
  trace.series[{"loss", 0}].Set(9, 1);
  EXPECT_EQ(LayersAt(trace, 0, {}).step, 5);
  EXPECT_DOUBLE_EQ(LayersAt(trace, 0, {}).rows[0].act_std.value(), 7);
  EXPECT_EQ(LayersAt(trace, 1, {}).step, 8);
  EXPECT_TRUE(LayersAt(trace, 0, 4).rows.empty());
  EXPECT_EQ(LayersAt(TraceWith({{"loss", 1}}), 0, {}).step, -1);
}

}  // namespace layer_table_test
}  // namespace trainwreck
