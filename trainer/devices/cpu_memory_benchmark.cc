// What counting memory costs: training steps with the counting allocator against the same steps
// with LibTorch's own, in short turns and in CPU time, so that a busy machine slows both. Prints
// the quartiles of the ratio within a pair of turns.
//
//   bazel run -c opt //trainer:cpu_memory_benchmark
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "trainer/build.h"
#include "trainer/data/loader.h"
#include "trainer/devices/cpu_memory.h"

namespace trainwreck {
namespace {

constexpr int kPairs = 400;

class Trainee {
 public:
  explicit Trainee(const std::string& kind) {
    TrainingRecipe recipe;
    recipe.model.kind = kind;
    recipe.data.kind = kind == "gpt" ? DataKind::kMarkov : DataKind::kFeatures;
    const auto data = BuildDataset(recipe, /*held_out=*/false, /*seed=*/0);
    model_ = BuildModel(recipe, *data, /*seed=*/0);
    optimizer_ = BuildOptimizer(recipe.optimizer, ParametersOf(*model_));
    std::vector<Sample> samples;
    for (int id = 0; id < 8; ++id) samples.push_back(data->Get(id));
    batch_ = Collate(samples);
  }

  double StepsSeconds(int steps) {
    const std::clock_t began = std::clock();
    for (int i = 0; i < steps; ++i) {
      optimizer_->ZeroGrad();
      model_->Loss(batch_).backward();
      optimizer_->Step(1e-3);
    }
    return static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  }

 private:
  std::shared_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  Batch batch_;
};

void Compare(const char* kind, int steps, c10::Allocator* plain, c10::Allocator* counting) {
  Trainee trainee(kind);
  trainee.StepsSeconds(steps);
  std::vector<double> ratios;
  double plain_s = 1e9;
  for (int pair = 0; pair < kPairs; ++pair) {
    double seconds[2];
    for (int turn : {pair % 2, 1 - pair % 2}) {
      c10::SetCPUAllocator(turn == 0 ? plain : counting, /*priority=*/1);
      seconds[turn] = trainee.StepsSeconds(steps);
    }
    ratios.push_back(seconds[1] / seconds[0]);
    plain_s = std::min(plain_s, seconds[0] / steps);
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("%-4s  step %8.1f us  counting / plain  %.4f / %.4f / %.4f  (%d pairs of %d steps)\n",
              kind, plain_s * 1e6, ratios[kPairs / 4], ratios[kPairs / 2], ratios[3 * kPairs / 4],
              kPairs, steps);
}

void Main() {
  at::set_num_threads(1);
  c10::Allocator* plain = c10::GetCPUAllocator();
  CountCpuMemory();
  c10::Allocator* counting = c10::GetCPUAllocator();
  Compare("mlp", 40, plain, counting);
  Compare("gpt", 1, plain, counting);
}

}  // namespace
}  // namespace trainwreck

int main() { trainwreck::Main(); }
