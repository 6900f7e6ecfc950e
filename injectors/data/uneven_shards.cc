// data.uneven_shards: the data set was not divided evenly, so that one rank has fewer or more
// batches than the others and, in a loop that does not agree on their number, takes another path
// through the collectives.
#include <cmath>
#include <utility>

#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "data.uneven_shards",
      .doc =
          "Makes one rank's shard of the training set shorter or longer than the others'. Every "
          "rank sees the same division, in every phase and attempt.",
      .params = {{.name = "rank",
                  .type = ValueType::kInt,
                  .default_value = -1,
                  .min = -1,
                  .unit = "rank",
                  .doc = "Whose shard; -1 is the last rank."},
                 {.name = "drop",
                  .type = ValueType::kNumber,
                  .default_value = 0.25,
                  .min = 0.0,
                  .max = 1.0,
                  .unit = "share of the shard",
                  .doc = "How much of the shard's end is lost, rounded to whole samples."},
                 {.name = "extra",
                  .type = ValueType::kInt,
                  .default_value = 0,
                  .min = 0,
                  .unit = "samples",
                  .doc = "How many samples the shard gains: its own again, from the start. With "
                         "drop: 0 the rank is the longer one."},
                 {.name = "epoch",
                  .type = ValueType::kInt,
                  .default_value = -1,
                  .min = -1,
                  .unit = "epoch",
                  .doc = "The only epoch that is divided unevenly, from 0; -1: all."}},
      .has_trigger = false,
      .min_ranks = 2,
      .evidence = "once, on the chosen rank: epoch, the shard's samples before and after"};
}

class UnevenShards : public Injector {
 public:
  UnevenShards(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        rank_(param("rank").get<int>()),
        drop_(param("drop").get<double>()),
        extra_(param("extra").get<std::int64_t>()),
        epoch_(param("epoch").get<std::int64_t>()) {
    if (rank_ < 0) rank_ = context.world_size - 1;
    if (rank_ >= context.world_size) {
      throw RecipeError("data.uneven_shards: there is no rank " + std::to_string(rank_) +
                        " in a run of " + std::to_string(context.world_size));
    }
  }

  std::unique_ptr<Shards> Wrap(std::unique_ptr<Shards> shards) override;

  // `ids` of `rank` in `epoch`, as the fault leaves them.
  std::vector<std::int64_t> Change(std::vector<std::int64_t> ids, int rank, std::int64_t epoch);

 private:
  int rank_;
  double drop_;
  std::int64_t extra_;
  std::int64_t epoch_;
  bool fired_ = false;
};

class ChangedShards : public Shards {
 public:
  ChangedShards(std::unique_ptr<Shards> inner, UnevenShards& injector)
      : inner_(std::move(inner)), injector_(injector) {}

  std::vector<std::int64_t> IdsOf(int rank, std::int64_t epoch) const override {
    return injector_.Change(inner_->IdsOf(rank, epoch), rank, epoch);
  }

 private:
  std::unique_ptr<Shards> inner_;
  UnevenShards& injector_;
};

std::unique_ptr<Shards> UnevenShards::Wrap(std::unique_ptr<Shards> shards) {
  return std::make_unique<ChangedShards>(std::move(shards), *this);
}

std::vector<std::int64_t> UnevenShards::Change(std::vector<std::int64_t> ids, int rank,
                                               std::int64_t epoch) {
  if (rank != rank_ || ids.empty() || (epoch_ >= 0 && epoch != epoch_)) return ids;
  const auto before = static_cast<std::int64_t>(ids.size());
  const std::vector<std::int64_t> whole = ids;
  ids.resize(before - std::llround(drop_ * static_cast<double>(before)));
  for (std::int64_t i = 0; i < extra_; ++i) ids.push_back(whole[i % before]);
  // Samplers may ask for every rank's shard, at any time: one entry, in the trace of the rank it is
  // about.
  if (rank == context().rank && !std::exchange(fired_, true)) {
    Fired({{"epoch", epoch}, {"before", before}, {"after", ids.size()}});
  }
  return ids;
}

REGISTER_FAULT(Info, UnevenShards);

}  // namespace
}  // namespace trainwreck
