// collective.slow_link: a slow network between the ranks: a shared or misconfigured link, ranks in
// different racks, a fallback from RDMA to TCP.
#include <chrono>
#include <thread>
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

FaultInfo Info() {
  return {
      .name = "collective.slow_link",
      .doc =
          "Lets each collective take as long as a ring of ranks over a slow link would need, in "
          "the thread that makes it: of n ranks each sends 2 (n - 1) / n of the bytes of an "
          "all-reduce, and (n - 1) / n of a broadcast's or of a reduction's to one rank.",
      .params = {{.name = "mb_per_s",
                  .type = ValueType::kNumber,
                  .default_value = 20.0,
                  .min = 0.001,
                  .unit = "MB/s",
                  .doc = "What the link carries."},
                 {.name = "latency_ms",
                  .type = ValueType::kNumber,
                  .default_value = 0.0,
                  .min = 0,
                  .max = 10000,
                  .unit = "ms",
                  .doc = "What each collective takes besides, however small it is."}},
      .min_ranks = 2,
      .evidence = "once: the bytes of the first collective, its seconds before and after"};
}

class SlowLink : public Injector {
 public:
  SlowLink(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        bytes_per_s_(param("mb_per_s").get<double>() * 1e6),
        latency_s_(param("latency_ms").get<double>() / 1e3) {}

  std::unique_ptr<Communicator> Wrap(std::unique_ptr<Communicator> inner) override {
    return std::make_unique<Link>(std::move(inner), *this);
  }

 private:
  class Link : public Communicator {
   public:
    Link(std::unique_ptr<Communicator> inner, SlowLink& owner)
        : inner_(std::move(inner)), owner_(owner) {}
    int rank() const override { return inner_->rank(); }
    int world_size() const override { return inner_->world_size(); }
    void AllReduce(at::Tensor& tensor, Reduction reduction) override {
      owner_.Make(2 * Share() * static_cast<double>(tensor.nbytes()),
                  [&] { inner_->AllReduce(tensor, reduction); });
    }
    void Broadcast(at::Tensor& tensor, int root) override {
      owner_.Make(Share() * static_cast<double>(tensor.nbytes()),
                  [&] { inner_->Broadcast(tensor, root); });
    }
    void Reduce(at::Tensor& tensor, int root) override {
      owner_.Make(Share() * static_cast<double>(tensor.nbytes()),
                  [&] { inner_->Reduce(tensor, root); });
    }
    void Barrier() override {
      owner_.Make(0, [&] { inner_->Barrier(); });
    }

   private:
    double Share() const { return 1.0 - 1.0 / world_size(); }

    std::unique_ptr<Communicator> inner_;
    SlowLink& owner_;
  };

  template <typename Call>
  void Make(double bytes, const Call& call) {
    if (!Acts()) return call();
    const Clock::time_point began = Clock::now();
    call();
    const Seconds before = Clock::now() - began;
    std::this_thread::sleep_for(Seconds(latency_s_ + bytes / bytes_per_s_));
    if (std::exchange(fired_, true)) return;
    const Seconds after = Clock::now() - began;
    Fired({{"bytes", bytes}, {"before", before.count()}, {"after", after.count()}});
  }

  double bytes_per_s_, latency_s_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, SlowLink);

}  // namespace
}  // namespace trainwreck
