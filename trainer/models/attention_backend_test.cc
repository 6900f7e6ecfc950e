// The fused attention that a recipe asks for is the one that is taken, and said to be.
#include "trainer/models/attention_backend.h"

#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "trainer/models/precision.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The attentions of a run, as "flash Float", with the mask and the gradient that it names.
std::vector<std::string> AttentionsOf(const Outcome& outcome) {
  std::vector<std::string> attentions;
  for (const Json& event : outcome.EventsOf("attention_chosen")) {
    attentions.push_back(event["backend"].get<std::string>() + " " +
                         event["dtype"].get<std::string>() +
                         (event["documents"].get<bool>() ? " documents" : "") +
                         (event["gradient"].get<bool>() ? " gradient" : ""));
  }
  return attentions;
}

Outcome RunWith(const Recipe& changes) {
  return RunOnce(With(Gpt(), With({{"steps", 4}, {"eval.at_epoch_end", false}}, changes)));
}

TEST(AttentionBackendTest, EachIsTakenAndTheyTrainAlike) {
  const Outcome itself = RunWith({});
  const Outcome flash = RunWith({{"model.attention_backend", "flash"}});
  const Outcome math = RunWith({{"model.attention_backend", "math"}});
  ASSERT_EQ(flash.code, 0);
  ASSERT_EQ(math.code, 0);
  // The run's end evaluates, which needs no gradient.
  EXPECT_THAT(AttentionsOf(flash), ElementsAre("flash Float gradient", "flash Float"));
  EXPECT_THAT(AttentionsOf(math), ElementsAre("math Float gradient", "math Float"));
  EXPECT_THAT(AttentionsOf(itself), ElementsAre("flash Float gradient", "flash Float"))
      << "what one run allows does not outlive it";
  EXPECT_EQ(BitsOf(itself), BitsOf(flash));
  EXPECT_NE(BitsOf(math), BitsOf(flash)) << "sums in another order";
  for (std::size_t step = 0; step < 4; ++step) {
    EXPECT_NEAR(math.Values("loss")[step], flash.Values("loss")[step], 1e-5) << step;
  }
}

TEST(AttentionBackendTest, IsSaidOnceForEachKind) {
  EXPECT_THAT(AttentionsOf(RunWith({{"precision", "bf16"}})),
              ElementsAre("flash BFloat16 gradient", "flash BFloat16"));
  EXPECT_THAT(AttentionsOf(RunWith({{"data.document_tokens", 6}, {"data.packing", true}})),
              ElementsAre("flash Float documents gradient", "flash Float documents"));
  EXPECT_THAT(AttentionsOf(RunWith({{"model.attention", "explicit"}})), ElementsAre())
      << "it is none of the library's";
}

TEST(AttentionBackendTest, IsThatOfTheTypeThatAutocastMakes) {
  AllowAttention(AttentionBackend::kAuto, at::kCPU);
  std::vector<std::string> types;
  const AttentionWatch watch([&](const AttentionChoice& choice) { types.push_back(choice.dtype); });
  const at::Tensor q = at::rand({1, 1, 4, 8});
  EXPECT_EQ(FusedAttention(q, q, q).scalar_type(), at::kFloat);
  const AutocastGuard autocast(Autocast{at::kCPU, at::kBFloat16});
  EXPECT_EQ(FusedAttention(q, q, q).scalar_type(), at::kBFloat16);
  EXPECT_THAT(types, ElementsAre("Float", "BFloat16"));
}

TEST(AttentionBackendTest, TheCpuRefusesThoseOfGpus) {
  for (const char* backend : {"cudnn", "efficient"}) {
    const Outcome outcome = RunWith({{"model.attention_backend", backend}});
    EXPECT_EQ(outcome.code, 2) << backend;
    EXPECT_TRUE(outcome.EventsOf("device_opened").empty());
  }
  try {
    AllowAttention(AttentionBackend::kCudnn, at::kCPU);
    ADD_FAILURE() << "it is allowed";
  } catch (const RecipeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.attention_backend: only of GPUs"));
  }
}

// As on a GPU whose flash attention does not take the shapes of a model.
TEST(AttentionBackendTest, OneThatCannotBeTakenIsSaidBeforeItThrows) {
  std::vector<std::string> taken;
  const at::Tensor q = at::rand({1, 1, 4, 8}).requires_grad_();
  {
    AllowAttention(AttentionBackend::kFlash, at::kCPU);
    const AttentionWatch watch(
        [&](const AttentionChoice& choice) { taken.push_back(choice.backend); });
    const at::Tensor mask = at::ones({4, 4}).requires_grad_();  // flash needs one without gradient
    EXPECT_ANY_THROW(FusedAttention(q, q, q, mask));
  }
  EXPECT_THAT(taken, ElementsAre("none"));
  AllowAttention(AttentionBackend::kAuto, at::kCPU);
  FusedAttention(q, q, q);
  EXPECT_EQ(taken.size(), 1U) << "nobody watches any more";
}

}  // namespace
}  // namespace trainwreck
