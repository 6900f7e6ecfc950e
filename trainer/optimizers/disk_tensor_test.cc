#include "trainer/optimizers/disk_tensor.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "trainer/devices/cpu_memory.h"
#include "trainer/optimizers/optimizers.h"

namespace trainwreck {
namespace {

using ::testing::HasSubstr;

class DiskTensorTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "disk_tensor";
    std::filesystem::create_directories(folder_);
    setenv("TMPDIR", folder_.c_str(), 1);
  }
  std::string folder_;
};

// Files that this process has mapped, and that lie in `folder`.
int MappedFiles(const std::string& folder) {
  std::ifstream maps("/proc/self/maps");
  int files = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(folder) != std::string::npos) ++files;
  }
  return files;
}

TEST_F(DiskTensorTest, LiesInAFileThatHasNoNameAndGoesWithTheTensor) {
  {
    at::Tensor tensor = ZerosOnDisk({300, 5}, at::kFloat);
    EXPECT_EQ(MappedFiles(folder_), 1);
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
    EXPECT_TRUE(tensor.eq(0).all().item<bool>());
    const at::Tensor values = at::randn({300, 5});
    tensor.copy_(values);
    EXPECT_TRUE(tensor.equal(values));
  }
  EXPECT_EQ(MappedFiles(folder_), 0);
}

TEST_F(DiskTensorTest, MayBeEmptyOrAScalar) {
  EXPECT_EQ(ZerosOnDisk({0, 3}, at::kFloat).numel(), 0);
  EXPECT_EQ(ZerosOnDisk({}, at::kByte).item<int>(), 0);
}

TEST_F(DiskTensorTest, SaysWhereThereIsNoRoom) {
  const auto error_of = [](at::IntArrayRef sizes) -> std::string {
    try {
      ZerosOnDisk(sizes, at::kFloat);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(error_of({1LL << 58}), HasSubstr("bytes in " + folder_));
  setenv("TMPDIR", "/proc/nowhere", 1);
  EXPECT_THAT(error_of({4}), HasSubstr("TMPDIR names another folder"));
}

struct Case {
  OptimizerKind kind;
  UpdateForm form;
  at::ScalarType dtype;
};

// Two parameters, one of several pieces, after some steps: the parameters, and the state.
StateDict Trained(const Case& one, Offload offload, std::int64_t* counted_bytes) {
  at::manual_seed(11);
  const NamedTensors parameters = {{"p", at::randn({200, 100}).set_requires_grad(true)},
                                   {"q", at::randn({37}).set_requires_grad(true)}};
  const std::int64_t before = CpuMemory().allocated_bytes;
  const auto optimizer = one.kind == OptimizerKind::kSgd
                             ? MakeSgd(parameters, {.momentum = 0.9,
                                                    .weight_decay = 0.1,
                                                    .form = one.form,
                                                    .state_dtype = one.dtype,
                                                    .offload = offload})
                             : MakeAdamW(parameters, {.weight_decay = 0.1,
                                                      .form = one.form,
                                                      .state_dtype = one.dtype,
                                                      .offload = offload});
  *counted_bytes = CpuMemory().allocated_bytes - before;
  for (int step = 0; step < 5; ++step) {
    for (auto [name, parameter] : parameters) {
      parameter.mutable_grad() = at::randn(parameter.sizes()).add(1.0);
    }
    optimizer->Step(0.01);
  }
  StateDict state;
  optimizer->Save(state);
  for (const auto& [name, parameter] : parameters) state[name] = parameter.detach();
  for (auto& [name, tensor] : state) tensor = tensor.clone();
  return state;
}

TEST_F(DiskTensorTest, AnOptimizerTrainsWithItBitForBitAndCountsNoMemoryForIt) {
  CountCpuMemory();
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdamW}) {
    for (const UpdateForm form : {UpdateForm::kFused, UpdateForm::kPlain}) {
      for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kByte}) {
        SCOPED_TRACE(testing::Message()
                     << at::toString(dtype) << ' ' << (kind == OptimizerKind::kSgd) << ' '
                     << (form == UpdateForm::kPlain));
        std::int64_t in_memory = 0, offloaded = 0;
        const StateDict expected = Trained({kind, form, dtype}, Offload::kNone, &in_memory);
        const StateDict got = Trained({kind, form, dtype}, Offload::kDisk, &offloaded);
        EXPECT_GT(in_memory, 20000);
        EXPECT_LT(offloaded, 4096);  // the tables of the codes, and the step
        ASSERT_EQ(got.size(), expected.size());
        for (const auto& [name, tensor] : expected) {
          EXPECT_TRUE(got.at(name).equal(tensor)) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace trainwreck
