#include "trainer/build.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <utility>

#include "harness/protocol/digest.h"
#include "trainer/build_data.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/data/data.h"
#include "trainer/data/elastic.h"
#include "trainer/data/sampler.h"
#include "trainer/data/shards.h"
#include "trainer/devices/cpu_memory.h"
#include "trainer/devices/device.h"
#include "trainer/devices/device_memory.h"
#include "trainer/devices/rng.h"
#include "trainer/loop.h"
#include "trainer/models/attention_backend.h"
#include "trainer/models/model.h"
#include "trainer/optimizers/in_backward.h"
#include "trainer/optimizers/master_weights.h"
#include "trainer/optimizers/scaler.h"
#include "trainer/optimizers/schedules.h"
#include "trainer/optimizers/sharded_state.h"
#include "trainer/ranks/call_log.h"
#include "trainer/ranks/communicator.h"
#include "trainer/ranks/divided_parameters.h"
#include "trainer/ranks/local_place.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/recipe/model_kinds.h"
#include "trainer/telemetry/failing_op.h"
#include "trainer/telemetry/memory_sites.h"
#include "trainer/telemetry/vocabulary.h"

namespace trainwreck {
namespace {

template <typename Part>
Part WrapAll(const Wrappers& wrappers, Part part) {
  for (const auto& wrapper : wrappers) part = wrapper->Wrap(std::move(part));
  return part;
}

std::unique_ptr<Communicator> BuildCommunicator(Device& device, const GroupOptions& options,
                                                const Clock& clock, TraceSink& sink) {
  if (options.world_size == 1) return MakeLocalCommunicator();
  std::unique_ptr<Communicator> communicator;
  try {
    communicator = device.MakeCommunicator(options);
  } catch (const RendezvousError& error) {
    sink.Report(events::kRendezvousFailed,
                {{"where", error.where()}, {"missing", error.missing()}, {"what", error.what()}});
    throw;
  }
  if (options.check_calls) communicator = MakeCheckedCommunicator(std::move(communicator));
  const auto log =
      std::make_shared<CallLog>(sink.folder() + "/rank" + std::to_string(options.rank) + ".calls",
                                [&sink] { return sink.elapsed_s(); });
  return MakeTracedCommunicator(
      std::move(communicator),
      [&sink, &clock, log](int call, const std::string& op, const std::string& shape,
                           const std::string& dtype) {
        sink.Collective(call, op, shape, dtype);
        log->Begin(call, clock.step, op, shape, dtype);
      },
      [log](int call, bool failed) { log->End(call, failed); });
}

std::string Variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

std::string Versions() {
  return std::string(kTrainerVersion) + ", LibTorch " + TORCH_VERSION + ", " +
         at::get_cpu_capability();
}

// What results of equal plans may depend on, besides the program and the device.
Json Environment() {
  std::string blas = at::hasMKL() ? at::get_mkl_version() : "other than MKL";
  if (const auto end = blas.find(" for "); end != std::string::npos) blas.resize(end);
  return {{"libtorch", TORCH_VERSION},
          {"cpu_capability", at::get_cpu_capability()},
          {"blas", blas},
          {"threads", std::to_string(at::get_num_threads())}};
}

Json RecipeJson(const Recipe& recipe) {
  Json json = Json::object();
  for (const auto& [key, value] : recipe) json[key] = value;
  return json;
}

}  // namespace

std::shared_ptr<Model> BuildModel(const TrainingRecipe& recipe, const Dataset& data,
                                  std::uint64_t seed) {
  const std::uint64_t model_seed = MixSeed(seed, kModelSeed);
  auto model = ModelKinds().at(recipe.model.kind).make(recipe, data, model_seed);
  for (auto& [name, parameter] : ParametersOf(*model)) {
    at::Tensor tensor = parameter;
    tensor.set_requires_grad(AnyGlobMatches(recipe.model.trainable, name));
  }
  if (recipe.model.dtype == ModelDtype::kBf16) model->to(at::kBFloat16);
  return model;
}

at::ScalarType TypeOf(StateDtype dtype) {
  switch (dtype) {
    case StateDtype::kFp32:
      return at::kFloat;
    case StateDtype::kBf16:
      return at::kBFloat16;
    case StateDtype::kFp16:
      return at::kHalf;
    case StateDtype::kInt8:
      return at::kByte;
  }
  throw std::logic_error("no such dtype");
}

std::unique_ptr<Optimizer> BuildOptimizer(const OptimizerRecipe& recipe, NamedTensors parameters) {
  if (recipe.kind == OptimizerKind::kSgd) {
    return MakeSgd(std::move(parameters), {.momentum = recipe.momentum,
                                           .weight_decay = recipe.weight_decay,
                                           .no_decay = recipe.no_decay,
                                           .form = recipe.form,
                                           .state_dtype = TypeOf(recipe.state_dtype),
                                           .offload = recipe.offload});
  }
  return MakeAdamW(std::move(parameters), {.beta1 = recipe.beta1,
                                           .beta2 = recipe.beta2,
                                           .eps = recipe.eps,
                                           .weight_decay = recipe.weight_decay,
                                           .no_decay = recipe.no_decay,
                                           .form = recipe.form,
                                           .state_dtype = TypeOf(recipe.state_dtype),
                                           .offload = recipe.offload});
}

std::unique_ptr<Optimizer> BuildOptimizer(const TrainingRecipe& recipe,
                                          const NamedTensors& parameters, const Division* division,
                                          Communicator* communicator) {
  MakeOptimizer make = [&](NamedTensors some) {
    return BuildOptimizer(recipe.optimizer, std::move(some));
  };
  if (KeepsMasters(recipe)) {
    make = [make](NamedTensors some) { return WithMasters(std::move(some), make); };
  }
  if (division != nullptr) return WithShardedState(*division, communicator, make);
  return recipe.optimizer.in_backward ? OptimizerForEach(parameters, make) : make(parameters);
}

std::unique_ptr<Shards> BuildShards(const TrainingRecipe& recipe, std::int64_t samples,
                                    std::uint64_t order_seed) {
  const int ranks = static_cast<int>(recipe.parallel_ranks);
  if (!recipe.sampler_deal_out) return std::make_unique<EqualShards>(samples, ranks);
  return std::make_unique<DealtShards>(samples, ranks, order_seed, recipe.sampler_shuffle);
}

std::function<std::int64_t(std::int64_t)> LengthsOf(const Dataset& data) {
  return [&data](std::int64_t id) { return data.length(id); };
}

std::function<StateDict(const std::vector<StateDict>&)> ReshardOf(const TrainingRecipe& recipe,
                                                                  int rank) {
  if (!recipe.checkpoint_elastic) return nullptr;
  return [rank, ranks = static_cast<int>(recipe.parallel_ranks)](
             const std::vector<StateDict>& saved) { return Reshard(saved, rank, ranks); };
}

void BuildModelAndOptimizer(const TrainingRecipe& recipe, std::uint64_t seed,
                            const Wrappers& wrappers, Parts& parts) {
  {
    MemoryScope memory(MemoryOwner::kParameters);
    // Built on the CPU, so that a seed gives the same weights on every device.
    auto model = BuildModel(recipe, *parts.train_data, seed);
    model->to(parts.device->torch_device());
    parts.model = WrapAll(wrappers, std::move(model));
  }
  MemoryScope memory(MemoryOwner::kOptimizer);
  const NamedTensors parameters = ParametersOf(*parts.model);
  if (recipe.parallel_zero_stage > 0) {
    const auto division = std::make_shared<Division>(parameters, parts.communicator->rank(),
                                                     parts.communicator->world_size());
    parts.division = division;
    if (recipe.parallel_zero_stage >= 3) {
      parts.divided_parameters =
          std::make_shared<DividedParameters>(parts.model, *division, *parts.communicator);
    }
  }
  // Divided parameters are handed out when they are used.
  Communicator* hands_out = parts.divided_parameters ? nullptr : parts.communicator.get();
  parts.optimizer =
      WrapAll(wrappers, BuildOptimizer(recipe, parameters, parts.division.get(), hands_out));
}

Json SettingsOf(at::DeviceType kind, const TrainingRecipe& recipe) {
  const at::Context& torch = at::globalContext();
  const bool is_gpu = kind == at::kCUDA;
  const bool rounds = torch.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) ==
                      at::Float32Precision::TF32;
  const bool reduces = torch.allowBF16ReductionCuBLAS() ==
                       at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK;
  return {{"kind", at::DeviceTypeName(kind, /*lower_case=*/true)},
          {"tf32", is_gpu && rounds},
          {"reduced_sums", is_gpu && reduces},
          {"allocator", is_gpu ? AllocatorSettings(recipe.memory_expandable_segments) : ""}};
}

std::unique_ptr<Device> OpenDeviceOf(const TrainingRecipe& recipe, const LocalPlace& local,
                                     EventSink& events) {
  auto device =
      OpenDevice(recipe.device, {.rank = local.rank,
                                 .world_size = local.world_size,
                                 .deterministic = recipe.deterministic,
                                 .expandable_segments = recipe.memory_expandable_segments});
  const at::DeviceType kind = device->torch_device().type();
  AllowAttention(recipe.model.attention_backend, kind);
  device->LimitMemory(recipe.memory_limit_bytes);
  Json fields = SettingsOf(kind, recipe);
  fields["name"] = device->name();
  fields["tells_of_xids"] = device->TellsOfXids();
  events.Report(events::kDeviceOpened, fields);
  return device;
}

// Into `parts` one by one, so that what is there when one throws is left as it is: a communicator
// may wait for its peers when it is destroyed.
void BuildParts(const TrainingRecipe& recipe, const Plan& plan, int rank, int world_size,
                Clock& clock, TraceSink& sink, const Wrappers& wrappers, Parts& parts) {
  const LocalPlace local = LocalPlaceOf(recipe.parallel_launcher, rank, world_size);
  parts.device = OpenDeviceOf(recipe, local, sink);
  clock.on_stage = [device = parts.device.get()](Stage stage) {
    device->BeginRange(ToString(stage));
  };
  const bool in_a_file = recipe.parallel_rendezvous == RendezvousKind::kFile;
  const GroupOptions group =
      WrapAll(wrappers, GroupOptions{.rank = rank,
                                     .world_size = world_size,
                                     .rendezvous_file = in_a_file ? plan.rendezvous : "",
                                     .address = Variable("MASTER_ADDR", "127.0.0.1"),
                                     .port = std::atoi(Variable("MASTER_PORT", "29500").c_str()),
                                     .ranks_here = local.world_size,
                                     .check_calls = recipe.parallel_check_collectives,
                                     .timeout_s = recipe.parallel_timeout_s,
                                     .dump_dir = sink.folder()});
  parts.communicator = WrapAll(wrappers, BuildCommunicator(*parts.device, group, clock, sink));
  BuildData(recipe, plan, sink, wrappers, parts);
  const std::uint64_t order_seed = MixSeed(plan.seed, kOrderSeed);
  parts.shards = WrapAll(wrappers, BuildShards(recipe, parts.train_data->size(), order_seed));
  const SamplerOptions sampler{.rank = rank,
                               .batch_size = recipe.data.batch_size,
                               .seed = order_seed,
                               .shuffle = recipe.sampler_shuffle && !recipe.sampler_deal_out,
                               .uneven = recipe.sampler_uneven,
                               .bucket_batches = recipe.sampler_bucket_batches,
                               .length = LengthsOf(*parts.train_data)};
  parts.sampler = WrapAll(wrappers, std::unique_ptr<Sampler>(std::make_unique<EpochSampler>(
                                        *parts.shards, *parts.communicator, sampler)));
  BuildModelAndOptimizer(recipe, plan.seed, wrappers, parts);
  parts.scaler = WrapAll(
      wrappers, MakeLossScaler(recipe.scaler, ParametersOf(*parts.model).at(0).second.device()));
  parts.schedule =
      WrapAll(wrappers, MakeSchedule(recipe.schedule, recipe.optimizer.lr, recipe.steps));
  parts.checkpoints = WrapAll(
      wrappers,
      std::unique_ptr<CheckpointStore>(std::make_unique<FileCheckpointStore>(CheckpointOptions{
          .dir = plan.checkpoint_dir,
          .keep = static_cast<int>(recipe.checkpoint_keep),
          .rank = rank,
          .world_size = world_size,
          .writer = clock.phase + "." + std::to_string(clock.attempt),
          .reshard = ReshardOf(recipe, rank),
          .on_damaged = [&sink](int steps_done, int file_rank, const std::string& why) {
            sink.Report(events::kCheckpointDamaged,
                        {{"steps_done", steps_done}, {"file_rank", file_rank}, {"why", why}});
          }})));
  for (const auto& wrapper : wrappers) {
    if (auto hook = wrapper->MakeHook()) parts.hooks.push_back(std::move(hook));
  }
}

namespace {

// What one process's run consists of, in the order in which it is made.
struct Process {
  Clock clock;
  std::unique_ptr<TraceSink> sink;
  TrainingRecipe recipe;
  Wrappers wrappers;
  Parts parts;
  std::unique_ptr<Telemetry> telemetry;
  std::unique_ptr<TrainingLoop> loop;
};

std::string Run(Process& process, const Plan& plan, int rank, int world_size,
                const WrapperFactory& make_wrappers) {
  process.recipe = ParseRecipe(plan.recipe);
  if (!plan.phase.empty() && plan.phase == process.recipe.finetune.phase) FineTune(process.recipe);
  // With one number of threads and a seed a run's bits are the same each time on one machine, if it
  // runs on the CPU.
  const int threads = static_cast<int>(process.recipe.threads);
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
  at::manual_seed(plan.seed + rank);  // ranks that draw the same numbers drop the same elements
  if (process.recipe.parallel_ranks != world_size) {
    if (!process.recipe.checkpoint_elastic) {
      throw RecipeError("parallel.ranks is " + std::to_string(process.recipe.parallel_ranks) +
                        ", but the world has " + std::to_string(world_size) +
                        "; checkpoint.elastic allows that");
    }
    SpreadOver(process.recipe, world_size);
  }
  at::globalContext().setDeterministicAlgorithms(process.recipe.deterministic, /*warn_only=*/false);
  at::globalContext().setAllowTF32CuBLAS(process.recipe.precision_tf32);
  at::globalContext().setAllowTF32CuDNN(process.recipe.precision_tf32);
  at::globalContext().setAllowBF16ReductionCuBLAS(process.recipe.precision_reduced_sums);
  at::globalContext().setAllowFP16ReductionCuBLAS(process.recipe.precision_reduced_sums);
  TraceSink& sink = *process.sink;
  const AttentionWatch attention([&sink](const AttentionChoice& choice) {
    sink.Report(events::kAttentionChosen, {{"backend", choice.backend},
                                           {"dtype", choice.dtype},
                                           {"documents", choice.has_mask},
                                           {"gradient", choice.needs_gradient}});
  });
  if (make_wrappers) {
    try {
      process.wrappers = make_wrappers(plan, rank, world_size, process.clock, sink);
    } catch (const std::exception& error) {  // what they object to stands in the plan
      throw RecipeError(error.what());
    }
  }
  BuildParts(process.recipe, plan, rank, world_size, process.clock, sink, process.wrappers,
             process.parts);
  process.telemetry = std::make_unique<Telemetry>(sink, plan.record);
  process.loop = std::make_unique<TrainingLoop>(process.recipe, process.parts, process.clock,
                                                *process.telemetry, sink, sink.folder());
  return ToString(process.loop->Run({.until = plan.until, .resume = plan.resume}));
}

// LibTorch's errors carry a stack of addresses, which would bury what they say.
std::string MessageOf(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

// Whose the memory was: the owner of most of it, its share, and the bytes of each; and the call
// sites.
Json FilledBy(const MemoryByOwner& bytes, const std::vector<std::int64_t>& by_site) {
  const auto most = std::max_element(bytes.begin(), bytes.end());
  const double all =
      static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
  const auto owner = static_cast<MemoryOwner>(most - bytes.begin());
  Json fields = LargestSite(owner, by_site);
  fields["owner"] = ToString(owner);
  fields["owner_share"] = all > 0 ? static_cast<double>(*most) / all : 0.0;
  fields["bytes_by_owner"] = ByOwner(bytes);
  fields["bytes_by_site"] = BySite(by_site);
  return fields;
}

void ReportOutOfMemory(Process& process, const std::string& what) {
  Json fields = {{"stage", ToString(process.clock.stage)}, {"what", what}};
  if (const auto refusal = LastCpuRefusal()) {
    fields["requested_bytes"] = refusal->requested_bytes;
    fields["allocated_bytes"] = refusal->allocated_bytes;
    fields["limit_bytes"] = refusal->limit_bytes;
    fields.update(FilledBy(refusal->by_owner, refusal->by_site));
    if (process.loop) {
      fields["activations_by_block"] = process.loop->ByBlock(refusal->activations_by_part);
    }
  } else if (const auto refused = LastDeviceRefusal()) {
    fields["requested_bytes"] = refused->requested_bytes;
    fields["allocated_bytes"] = refused->numbers.allocated_bytes;
    fields["limit_bytes"] = refused->numbers.limit_bytes;
    fields["reserved_bytes"] = refused->numbers.reserved_bytes;
    fields["free_bytes"] = refused->numbers.free_bytes;
  }
  process.sink->Report(events::kOutOfMemory, std::move(fields));
}

// What the driver told of the device in this run: an error of the GPU itself comes up as one of a
// call.
std::string SaidOfDevice(Process& process) {
  const Device* device = process.parts.device.get();
  if (device == nullptr) return "";
  HealthReport early(*process.sink);  // of a run that has not come to its first step
  HealthReport& report = process.telemetry ? process.telemetry->health() : early;
  if (const auto health = process.parts.device->HealthAfterError()) report.Take(*health);
  return report.xids().empty() ? "" : "; the driver told of the GPU: " + report.xids();
}

// Says why in the trace and on stderr.
int Fail(Process& process, const std::exception& error, const std::string& why, int code) {
  const std::string what =
      MessageOf(error) + (why == "exception" ? SaidOfDevice(process) : std::string());
  std::cerr << "trainwreck-trainer: " << what << std::endl;
  Json fields = {
      {"what", what}, {"samples", Json::array()}, {"stage", ToString(process.clock.stage)}};
  if (const FailingOp failing = LastFailingOp(); !failing.op.empty()) {
    fields["op"] = failing.op;
    fields["within"] = failing.within;
  }
  if (process.loop) fields["samples"] = process.loop->current_samples();
  LimitCpuMemory(0);  // what is left to do must not fail for the same reason
  try {
    if (process.loop) process.loop->FinishSave();  // it is of an earlier step, and sound
  } catch (const std::exception& save_error) {
    std::cerr << "trainwreck-trainer: " << MessageOf(save_error) << std::endl;
  }
  try {
    if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) ReportOutOfMemory(process, what);
    if (why == "exception") process.sink->Report(events::kException, std::move(fields));
    process.sink->End(why);
  } catch (const std::exception& trace_error) {  // a full disk, say: stderr has to do
    std::cerr << "trainwreck-trainer: " << trace_error.what() << std::endl;
  }
  return code;
}

}  // namespace

void WarmUpParts(TrainingRecipe recipe, bool with_backward) {
  const auto data = BuildDataset(recipe, /*held_out=*/false, /*seed=*/0);
  const auto model = BuildModel(recipe, *data, /*seed=*/0);
  const Batch batch = Collate({data->Get(0), data->Get(1)});
  std::vector<OptimizerKind> rules;
  if (with_backward) rules = {OptimizerKind::kSgd, OptimizerKind::kAdamW};
  for (const OptimizerKind kind : rules) {
    recipe.optimizer.kind = kind;
    const auto optimizer = BuildOptimizer(recipe.optimizer, ParametersOf(*model));
    optimizer->ZeroGrad();
    model->Loss(batch).backward();
    optimizer->Step(0.001);
  }
  at::NoGradGuard no_grad;
  model->Loss(batch);
}

int Train(const Plan& plan, int rank, int world_size, const std::string& trace_dir,
          const WrapperFactory& make_wrappers) {
  CountCpuMemory();
  if (Variable("CUDA_LAUNCH_BLOCKING", "0") == "1") WatchOperations();
  auto process = std::make_unique<Process>();
  process->clock.phase = plan.phase;
  process->clock.attempt = plan.attempt;
  int code = 1;
  try {
    process->sink = std::make_unique<TraceSink>(
        trace_dir + "/rank" + std::to_string(rank) + ".jsonl", process->clock);
    process->sink->Start({{"rank", rank},
                          {"world_size", world_size},
                          {"phase", plan.phase},
                          {"attempt", plan.attempt},
                          {"pid", getpid()},
                          {"run", plan.run},
                          {"seed", plan.seed},
                          {"recipe_digest", DigestText(RecipeJson(plan.recipe).dump())},
                          {"version", Versions()},
                          {"environment", Environment()}});
    const std::string why = Run(*process, plan, rank, world_size, make_wrappers);
    process->sink->End(why);
    return 0;
  } catch (const RecipeError& error) {
    code = Fail(*process, error, "bad_plan", 2);
  } catch (const GuardStop& error) {
    code = Fail(*process, error, "guard", 3);
  } catch (const std::exception& error) {
    if (!process->sink) throw;  // there is no trace to say it in
    code = Fail(*process, error, "exception", 1);
  }
  // The communicator's end could wait for peers that are gone; the process is about to leave
  // anyway.
  (void)process.release();
  return code;
}

}  // namespace trainwreck
