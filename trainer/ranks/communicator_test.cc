#include "trainer/ranks/communicator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sstream>

#include "trainer/ranks/bucket.h"
#include "trainer/ranks/forked_ranks.h"
#include "trainer/ranks/rendezvous.h"

namespace trainwreck {
namespace {

std::unique_ptr<Communicator> Join(const ScratchFolder& folder, int rank, int world_size,
                                   double timeout_s = 20) {
  return MakeGlooCommunicator({.rank = rank,
                               .world_size = world_size,
                               .rendezvous_file = folder.File("rendezvous"),
                               .timeout_s = timeout_s});
}

// Whole numbers, whose sum is exact in any order.
at::Tensor Numbers(std::int64_t n, int rank) { return at::arange(n, at::kFloat) * (rank + 1); }

std::string Text(const at::Tensor& tensor) {
  std::ostringstream text;
  const at::Tensor flat = tensor.reshape({-1}).to(at::kDouble);
  for (std::int64_t i = 0; i < flat.numel(); ++i) text << flat[i].item<double>() << ' ';
  return text.str();
}

void ExpectAllReturn(const std::vector<RankEnd>& ends, const std::string& output) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    EXPECT_EQ(ends[rank].exit_code, 0) << "rank " << rank << ": " << ends[rank].output;
    EXPECT_EQ(ends[rank].signal, 0) << "rank " << rank;
    EXPECT_EQ(ends[rank].output, output) << "rank " << rank;
  }
}

class Gloo : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Gloo, ::testing::Values(2, 4));

TEST_P(Gloo, AllReducesSumMaxAndMin) {
  const int world_size = GetParam();
  ScratchFolder folder;
  const auto ends = RunForked(world_size, [&](int rank) {
    auto communicator = Join(folder, rank, world_size);
    at::Tensor sum = Numbers(4, rank), max = Numbers(4, rank), min = Numbers(4, rank);
    communicator->AllReduce(sum, Reduction::kSum);
    communicator->AllReduce(max, Reduction::kMax);
    communicator->AllReduce(min, Reduction::kMin);
    communicator->Barrier();
    return Text(sum) + "| " + Text(max) + "| " + Text(min);
  });
  ExpectAllReturn(
      ends, world_size == 2 ? "0 3 6 9 | 0 2 4 6 | 0 1 2 3 " : "0 10 20 30 | 0 4 8 12 | 0 1 2 3 ");
}

TEST_P(Gloo, BroadcastsFromAnyRoot) {
  const int world_size = GetParam();
  ScratchFolder folder;
  const auto ends = RunForked(world_size, [&](int rank) {
    auto communicator = Join(folder, rank, world_size);
    std::string text;
    for (int root : {0, 1}) {
      at::Tensor tensor = Numbers(3, rank);
      communicator->Broadcast(tensor, root);
      text += Text(tensor);
    }
    communicator->Barrier();
    return text;
  });
  ExpectAllReturn(ends, "0 1 2 0 2 4 ");
}

TEST_P(Gloo, ReducesToAnyRoot) {
  const int world_size = GetParam();
  ScratchFolder folder;
  const auto ends = RunForked(world_size, [&](int rank) {
    auto communicator = Join(folder, rank, world_size);
    std::string text;
    for (int root : {0, 1}) {
      at::Tensor tensor = Numbers(6, rank).to(root == 0 ? at::kFloat : at::kBFloat16);
      at::Tensor part = tensor.narrow(0, 1, 3);
      communicator->Reduce(part, root);
      if (rank == root) text += Text(tensor);
    }
    communicator->Barrier();
    return text;
  });
  const bool two = world_size == 2;
  EXPECT_EQ(ends[0].output, two ? "0 3 6 9 4 5 " : "0 10 20 30 4 5 ");
  EXPECT_EQ(ends[1].output, two ? "0 3 6 9 8 10 " : "0 10 20 30 8 10 ");
  for (int rank = 2; rank < world_size; ++rank) EXPECT_EQ(ends[rank].output, "");
}

TEST_P(Gloo, BucketsOfAnySizeGiveTheSameMean) {
  const int world_size = GetParam();
  for (std::int64_t bucket_bytes : {1, 40, 1 << 20}) {
    ScratchFolder folder;
    int calls = 0;
    const auto ends = RunForked(world_size, [&](int rank) {
      auto communicator = MakeTracedCommunicator(
          Join(folder, rank, world_size),
          [&](int, const std::string&, const std::string&, const std::string&) { ++calls; });
      // A transposed tensor, an undefined one, a scalar, an empty one, and one of another dtype.
      std::vector<at::Tensor> tensors = {Numbers(6, rank).view({2, 3}).t(), at::Tensor(),
                                         at::full({}, 8.0 * (rank + 1)), at::zeros({0}),
                                         Numbers(2, rank).to(at::kDouble)};
      AllReduceMean(*communicator, tensors, bucket_bytes, world_size);
      communicator->Barrier();
      return Text(tensors[0]) + Text(tensors[2]) + Text(tensors[4]) + std::to_string(calls);
    });
    const std::string calls_text = bucket_bytes == 1 ? "5" : bucket_bytes == 40 ? "3" : "3";
    ExpectAllReturn(
        ends, (world_size == 2 ? "0 4.5 1.5 6 3 7.5 12 0 1.5 " : "0 7.5 2.5 10 5 12.5 20 0 2.5 ") +
                  calls_text);
  }
}

TEST(Bucket, DividesByTheRanksThatHadData) {
  ScratchFolder folder;
  const auto ends = RunForked(2, [&](int rank) {
    auto communicator = Join(folder, rank, 2);
    std::vector<at::Tensor> tensors = {rank == 0 ? Numbers(3, 0) : at::zeros({3})};
    AllReduceMean(*communicator, tensors, 1 << 20, /*active=*/1);
    communicator->Barrier();
    return Text(tensors[0]);
  });
  ExpectAllReturn(ends, "0 1 2 ");
}

// At moments around the survivor's write as well: an error of the call, never a SIGPIPE.
TEST(GlooFailure, DeathOfAPeerIsAnErrorAtOnce) {
  for (int round = 0; round < 10; ++round) {
    ScratchFolder folder;
    const auto ends = RunForked(2, [&](int rank) {
      auto communicator = Join(folder, rank, 2);
      communicator->Barrier();
      if (rank == 1) raise(SIGKILL);
      usleep(300 * round);
      at::Tensor tensor = Numbers(100000, rank);
      communicator->AllReduce(tensor, Reduction::kSum);
      return std::string("not reached");
    });
    EXPECT_EQ(ends[1].signal, SIGKILL);
    EXPECT_EQ(ends[0].exit_code, 1) << ends[0].output;
    EXPECT_EQ(ends[0].signal, 0);
    // The barrier returns on one rank before the other is through with it.
    EXPECT_TRUE(ends[0].output.starts_with("all_reduce (call 1 of rank 0 of 2)") ||
                ends[0].output.starts_with("barrier (call 0 of rank 0 of 2)"))
        << ends[0].output;
    EXPECT_LT(ends[0].seconds - ends[1].seconds, 3.0);
  }
}

TEST(GlooFailure, APeerThatNeverCallsIsATimeout) {
  ScratchFolder folder;
  const auto ends = RunForked(
      2,
      [&](int rank) {
        auto communicator = Join(folder, rank, 2, /*timeout_s=*/1.5);
        if (rank == 1) raise(SIGSTOP);
        communicator->Barrier();
        return std::string("not reached");
      },
      /*limit_s=*/7);
  EXPECT_EQ(ends[0].exit_code, 1) << ends[0].output;
  EXPECT_NE(ends[0].output.find("barrier (call 0 of rank 0 of 2)"), std::string::npos)
      << ends[0].output;
  EXPECT_GT(ends[0].seconds, 1.4);
  EXPECT_LT(ends[0].seconds, 6.9);
  EXPECT_EQ(ends[1].signal, SIGKILL) << "a stopped rank stays until somebody kills it";
}

TEST(GlooFailure, RendezvousNamesWhoIsMissing) {
  ScratchFolder folder;
  const auto ends = RunForked(3, [&](int rank) {
    if (rank == 1) return std::string("never came");
    Join(folder, rank, 3, /*timeout_s=*/2);
    return std::string("not reached");
  });
  EXPECT_EQ(ends[0].exit_code, 1);
  EXPECT_NE(ends[0].output.find("these ranks have not come: 1"), std::string::npos)
      << ends[0].output;
  EXPECT_EQ(ends[2].exit_code, 1);
}

// Its peers still connect while it ends, if nothing holds it up.
TEST(GlooFailure, ARankMayEndAsSoonAsItIsConnected) {
  constexpr int kRounds = 25, kRanks = 8;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    ScratchFolder folder;
    const auto ends = RunForked(kRanks, [&](int rank) {
      const auto communicator = Join(folder, rank, kRanks);
      if (rank == round % kRanks) _exit(0);
      return std::string("connected");
    });
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(ends[rank].exit_code, 0) << "rank " << rank << ": " << ends[rank].output;
    }
  }
}

TEST(GlooFailure, RefusesARankThatDoesNotExist) {
  EXPECT_THROW(MakeGlooCommunicator({.rank = 2, .world_size = 2, .rendezvous_file = "/dev/null"}),
               std::runtime_error);
}

TEST(GlooTeardown, HealthyRanksThatEndApartEndWell) {
  for (int round = 0; round < 20; ++round) {
    ScratchFolder folder;
    const auto ends = RunForked(2, [&](int rank) {
      {
        auto communicator = Join(folder, rank, 2);
        at::Tensor tensor = Numbers(1000, rank);
        for (int i = 0; i < 5; ++i) communicator->AllReduce(tensor, Reduction::kSum);
        communicator->Barrier();
        if (rank == round % 2) usleep(20000);
      }
      return std::string("done");
    });
    ExpectAllReturn(ends, "done");
  }
}

TEST(Traced, ReportsEveryCallBeforeItIsMade) {
  // A sink that throws stands for a call that never returns: the inner communicator must not be
  // reached.
  class Inner : public Communicator {
   public:
    explicit Inner(int& calls) : calls_(calls) {}
    int rank() const override { return 3; }
    int world_size() const override { return 4; }
    void AllReduce(at::Tensor&, Reduction) override { ++calls_; }
    void Broadcast(at::Tensor&, int) override { ++calls_; }
    void Reduce(at::Tensor&, int) override { ++calls_; }
    void Barrier() override { ++calls_; }
    int& calls_;
  };
  int calls = 0;
  std::string log;
  auto traced = MakeTracedCommunicator(
      std::make_unique<Inner>(calls),
      [&](int call, const std::string& op, const std::string& shape, const std::string& dtype) {
        EXPECT_EQ(call, calls) << "written after the call";
        log += std::to_string(call) + " " + op + " " + shape + " " + dtype + "\n";
      });
  EXPECT_EQ(traced->rank(), 3);
  EXPECT_EQ(traced->world_size(), 4);
  at::Tensor tensor = at::zeros({64, 3});
  at::Tensor count = at::zeros({}, at::kLong);
  traced->AllReduce(tensor, Reduction::kSum);
  traced->AllReduce(count, Reduction::kMin);
  traced->Broadcast(tensor, 0);
  traced->Reduce(tensor, 0);
  traced->Reduce(count, 2);
  traced->Barrier();
  EXPECT_EQ(log,
            "0 all_reduce [64,3] float32\n"
            "1 all_reduce_min [] int64\n"
            "2 broadcast [64,3] float32\n"
            "3 reduce [64,3] float32\n"
            "4 reduce_to_2 [] int64\n"
            "5 barrier [] \n");
}

// A port that was free just before.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(fd, generic, size), 0);
  EXPECT_EQ(getsockname(fd, generic, &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

GroupOptions OverTcp(int rank, int world_size, int port, double timeout_s = 20) {
  return {.rank = rank,
          .world_size = world_size,
          .address = "127.0.0.1",
          .port = port,
          .timeout_s = timeout_s};
}

TEST(Tcp, RanksMeetAtTheStoreOfRankZero) {
  const int port = FreePort();
  const auto ends = RunForked(3, [&](int rank) {
    auto communicator = MakeGlooCommunicator(OverTcp(rank, 3, port));
    at::Tensor sum = Numbers(2, rank);
    communicator->AllReduce(sum, Reduction::kSum);
    communicator->Barrier();
    return Text(sum);
  });
  ExpectAllReturn(ends, "0 6 ");
}

TEST(Rendezvous, KnowsRanksOfOneMachine) {
  EXPECT_TRUE(IsLocalGroup({.rendezvous_file = "/run/meet"}));
  EXPECT_TRUE(IsLocalGroup({.address = "127.0.0.1", .port = 9}));
  EXPECT_FALSE(IsLocalGroup({.address = "10.0.0.3", .port = 9}));
  EXPECT_TRUE(IsLocalGroup({.world_size = 4, .rendezvous_file = "/run/meet", .ranks_here = 4}));
  EXPECT_FALSE(IsLocalGroup({.world_size = 4, .rendezvous_file = "/shared/meet", .ranks_here = 2}));
}

TEST(Tcp, RanksOfSeveralMachinesUseTheInterfaceThatTheEnvironmentNames) {
  const auto sums_over = [](const char* interface) {
    const int port = FreePort();
    return RunForked(2, [&](int rank) {
      setenv("GLOO_SOCKET_IFNAME", interface, 1);
      GroupOptions options = OverTcp(rank, 2, port);
      options.ranks_here = 1;
      auto communicator = MakeGlooCommunicator(options);
      at::Tensor sum = Numbers(2, rank);
      communicator->AllReduce(sum, Reduction::kSum);
      communicator->Barrier();
      return Text(sum);
    });
  };
  ExpectAllReturn(sums_over("lo"), "0 3 ");
  for (const RankEnd& end : sums_over("nowhere0")) {
    EXPECT_NE(end.output.find("nowhere0"), std::string::npos) << end.output;
  }
}

TEST(Tcp, RankZeroNamesWhoIsMissingAndTheOtherWhereItLooked) {
  const int port = FreePort(), elsewhere = FreePort();
  const auto ends = RunForked(2, [&](int rank) {
    MakeGlooCommunicator(OverTcp(rank, 2, rank == 0 ? port : elsewhere, 2));
    return std::string("met");
  });
  EXPECT_EQ(ends[0].output, "rendezvous of rank 0 of 2 at 127.0.0.1:" + std::to_string(port) +
                                " within 2 s: these ranks have not come: 1");
  EXPECT_NE(ends[1].output.find("rendezvous of rank 1 of 2 at 127.0.0.1:" +
                                std::to_string(elsewhere) + " within 2 s: "),
            std::string::npos)
      << ends[1].output;
}

// Rank 1 waits for a rank that does not exist, and asks who is missing after rank 0 has failed.
RankEnd RankOneThatWaitsLonger(double timeout_of_zero_s, double timeout_of_one_s) {
  const int port = FreePort();
  const auto ends = RunForked(2, [&](int rank) {
    MakeGlooCommunicator(rank == 0 ? OverTcp(0, 2, port, timeout_of_zero_s)
                                   : OverTcp(1, 3, port, timeout_of_one_s));
    return std::string("met");
  });
  EXPECT_EQ(ends[0].exit_code, 1);
  return ends[1];
}

TEST(Tcp, RankZeroStaysUntilTheOthersHaveAskedWhoIsMissing) {
  const RankEnd end = RankOneThatWaitsLonger(1, 1.5);
  EXPECT_NE(end.output.find(" within 1.5 s: these ranks have not come: 2"), std::string::npos)
      << end.output;
}

TEST(Tcp, AStoreThatIsGoneIsSaid) {
  const RankEnd end = RankOneThatWaitsLonger(0.5, 20);
  EXPECT_NE(end.output.find("rendezvous of rank 1 of 3 at 127.0.0.1:"), std::string::npos)
      << end.output;
  EXPECT_NE(end.output.find("rank 0, which serves the store, is gone: "), std::string::npos)
      << end.output;
  EXPECT_LT(end.seconds, 10);
}

TEST(Checked, LetsEqualCallsThrough) {
  ScratchFolder folder;
  const auto ends = RunForked(2, [&](int rank) {
    auto communicator = MakeCheckedCommunicator(Join(folder, rank, 2));
    at::Tensor sum = Numbers(3, rank), taken = Numbers(2, rank);
    communicator->AllReduce(sum, Reduction::kSum);
    communicator->Broadcast(taken, 1);
    communicator->Reduce(taken, 0);
    communicator->Barrier();
    return Text(sum) + (rank == 0 ? Text(taken) : "0 4 ");
  });
  ExpectAllReturn(ends, "0 3 6 0 4 ");
}

TEST(Checked, NamesWhatEachRankCallsWhereTheyDiffer) {
  ScratchFolder folder;
  const auto ends = RunForked(2, [&](int rank) {
    auto communicator = MakeCheckedCommunicator(Join(folder, rank, 2));
    communicator->Barrier();
    at::Tensor tensor = rank == 0 ? Numbers(3, 0) : Numbers(3, 0).to(at::kInt);
    communicator->AllReduce(tensor, Reduction::kSum);
    return std::string("called");
  });
  for (const RankEnd& end : ends) {
    EXPECT_EQ(end.output,
              "collectives differ in call 1: rank 0 all_reduce [3] float32, rank 1 all_reduce [3] "
              "int32");
  }
}

TEST(Checked, NamesTheRootsOfReductions) {
  ScratchFolder folder;
  const auto ends = RunForked(2, [&](int rank) {
    auto communicator = MakeCheckedCommunicator(Join(folder, rank, 2));
    at::Tensor tensor = Numbers(3, 0);
    communicator->Reduce(tensor, /*root=*/rank);
    return std::string("called");
  });
  for (const RankEnd& end : ends) {
    EXPECT_EQ(end.output,
              "collectives differ in call 0: rank 0 reduce [3] float32, rank 1 reduce_to_1 [3] "
              "float32");
  }
}

TEST(Checked, NamesACallThatOneRankLeavesOut) {
  ScratchFolder folder;
  const auto ends = RunForked(2, [&](int rank) {
    auto communicator = MakeCheckedCommunicator(Join(folder, rank, 2));
    at::Tensor tensor = Numbers(3, rank);
    if (rank == 0) communicator->AllReduce(tensor, Reduction::kSum);
    communicator->Barrier();
    return std::string("called");
  });
  for (const RankEnd& end : ends) {
    EXPECT_EQ(end.output,
              "collectives differ in call 0: rank 0 all_reduce [3] float32, rank 1 barrier");
  }
}

TEST(Local, ChangesNothing) {
  auto local = MakeLocalCommunicator();
  at::Tensor tensor = Numbers(3, 0);
  local->AllReduce(tensor, Reduction::kSum);
  local->Broadcast(tensor, 0);
  local->Barrier();
  std::vector<at::Tensor> tensors = {tensor};
  AllReduceMean(*local, tensors, 1, 1);
  EXPECT_TRUE(at::equal(tensor, Numbers(3, 0)));
  EXPECT_EQ(local->world_size(), 1);
}

}  // namespace
}  // namespace trainwreck
