#include "trainer/ranks/communicator.h"

#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>

#include <sstream>
#include <stdexcept>
#include <utility>

namespace trainwreck {
namespace {

class LocalCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  void AllReduce(at::Tensor&, Reduction) override {}
  void Broadcast(at::Tensor&, int) override {}
  void Barrier() override {}
};

class TracedCommunicator : public Communicator {
 public:
  TracedCommunicator(std::unique_ptr<Communicator> inner, FingerprintSink sink, CallEndSink ended)
      : inner_(std::move(inner)), sink_(std::move(sink)), ended_(std::move(ended)) {}

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }

  void AllReduce(at::Tensor& tensor, Reduction reduction) override {
    Trace(OpName(reduction), ShapeText(tensor), DtypeText(tensor),
          [&] { inner_->AllReduce(tensor, reduction); });
  }
  void Broadcast(at::Tensor& tensor, int root) override {
    Trace(BroadcastName(root), ShapeText(tensor), DtypeText(tensor),
          [&] { inner_->Broadcast(tensor, root); });
  }
  void Reduce(at::Tensor& tensor, int root) override {
    Trace(ReduceName(root), ShapeText(tensor), DtypeText(tensor),
          [&] { inner_->Reduce(tensor, root); });
  }
  void Barrier() override {
    Trace("barrier", "[]", "", [&] { inner_->Barrier(); });
  }

 private:
  template <typename Make>
  void Trace(const std::string& op, const std::string& shape, const std::string& dtype,
             const Make& make) {
    const int call = call_++;
    sink_(call, op, shape, dtype);
    try {
      make();
    } catch (...) {
      if (ended_) ended_(call, /*failed=*/true);
      throw;
    }
    if (ended_) ended_(call, /*failed=*/false);
  }

  std::unique_ptr<Communicator> inner_;
  FingerprintSink sink_;
  CallEndSink ended_;
  int call_ = 0;
};

class CheckedCommunicator : public Communicator {
 public:
  explicit CheckedCommunicator(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }

  void AllReduce(at::Tensor& tensor, Reduction reduction) override {
    Compare(OpName(reduction) + (" " + ShapeText(tensor)) + " " + DtypeText(tensor));
    inner_->AllReduce(tensor, reduction);
  }
  void Broadcast(at::Tensor& tensor, int root) override {
    Compare(BroadcastName(root) + " " + ShapeText(tensor) + " " + DtypeText(tensor));
    inner_->Broadcast(tensor, root);
  }
  void Reduce(at::Tensor& tensor, int root) override {
    Compare(ReduceName(root) + " " + ShapeText(tensor) + " " + DtypeText(tensor));
    inner_->Reduce(tensor, root);
  }
  void Barrier() override {
    Compare("barrier");
    inner_->Barrier();
  }

 private:
  static constexpr std::int64_t kLength = 64;  // of a call's text, in characters

  // Each rank fills its row of a table of characters; the sum has all of them.
  void Compare(const std::string& own) {
    at::Tensor table = at::zeros({world_size(), kLength}, at::kInt);
    auto row = table.accessor<int, 2>()[rank()];
    for (std::int64_t i = 0; i < kLength && i < static_cast<std::int64_t>(own.size()); ++i) {
      row[i] = static_cast<unsigned char>(own[i]);
    }
    inner_->AllReduce(table, Reduction::kSum);
    const int call = call_++;
    std::ostringstream all;
    bool differ = false;
    const auto rows = table.accessor<int, 2>();
    for (int other = 0; other < world_size(); ++other) {
      std::string text;
      for (std::int64_t i = 0; i < kLength && rows[other][i] != 0; ++i) {
        text += static_cast<char>(rows[other][i]);
      }
      differ = differ || text != own.substr(0, kLength);
      all << (other > 0 ? ", " : "") << "rank " << other << " " << text;
    }
    if (differ) {
      throw std::runtime_error("collectives differ in call " + std::to_string(call) + ": " +
                               all.str());
    }
  }

  std::unique_ptr<Communicator> inner_;
  int call_ = 0;
};

}  // namespace

std::string BroadcastName(int root) {
  return root == 0 ? "broadcast" : "broadcast_from_" + std::to_string(root);
}

std::string ReduceName(int root) {
  return root == 0 ? "reduce" : "reduce_to_" + std::to_string(root);
}

const char* OpName(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "all_reduce";
    case Reduction::kMax:
      return "all_reduce_max";
    case Reduction::kMin:
      return "all_reduce_min";
  }
  return "all_reduce";
}

std::string ShapeText(const at::Tensor& tensor) {
  std::ostringstream text;
  text << '[';
  for (std::int64_t i = 0; i < tensor.dim(); ++i) text << (i ? "," : "") << tensor.size(i);
  text << ']';
  return text.str();
}

std::string DtypeText(const at::Tensor& tensor) {
  // The names that Python users know, which LibTorch's C++ side calls Float, Long, ...
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    case at::kShort:
      return "int16";
    case at::kChar:
      return "int8";
    case at::kByte:
      return "uint8";
    case at::kBool:
      return "bool";
    default:
      return c10::toString(tensor.scalar_type());
  }
}

std::unique_ptr<Communicator> MakeLocalCommunicator() {
  return std::make_unique<LocalCommunicator>();
}

std::unique_ptr<Communicator> MakeCheckedCommunicator(std::unique_ptr<Communicator> inner) {
  return std::make_unique<CheckedCommunicator>(std::move(inner));
}

std::unique_ptr<Communicator> MakeTracedCommunicator(std::unique_ptr<Communicator> inner,
                                                     FingerprintSink sink, CallEndSink ended) {
  return std::make_unique<TracedCommunicator>(std::move(inner), std::move(sink), std::move(ended));
}

}  // namespace trainwreck
