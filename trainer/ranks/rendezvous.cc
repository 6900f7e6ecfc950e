#include "trainer/ranks/rendezvous.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <vector>

namespace trainwreck {
namespace {

std::string ArrivalKey(int rank) { return "arrived/" + std::to_string(rank); }

// Which ranks never came to the rendezvous; empty: all did.
std::string MissingRanks(c10d::Store& store, int world_size) {
  std::string missing;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!store.check({ArrivalKey(rank)})) missing += " " + std::to_string(rank);
  }
  return missing;
}

}  // namespace

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(seconds * 1e3)));
}

c10::intrusive_ptr<c10d::Store> Arrive(const GroupOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw std::runtime_error("rank " + std::to_string(options.rank) + " of " +
                             std::to_string(options.world_size) + " ranks does not exist");
  }
  auto store = c10::make_intrusive<c10d::FileStore>(options.rendezvous_file, options.world_size);
  store->setTimeout(Milliseconds(options.timeout_s));
  store->set(ArrivalKey(options.rank), std::vector<std::uint8_t>{1});
  return store;
}

void AwaitArrivals(c10d::Store& store, const GroupOptions& options) {
  std::vector<std::string> arrivals;
  for (int rank = 0; rank < options.world_size; ++rank) arrivals.push_back(ArrivalKey(rank));
  try {
    store.wait(arrivals, Milliseconds(options.timeout_s));
  } catch (const std::exception& error) {
    throw std::runtime_error(RendezvousFailure(store, options, error.what()));
  }
}

std::string RendezvousFailure(c10d::Store& store, const GroupOptions& options, const char* what) {
  std::ostringstream message;
  message << "rendezvous of rank " << options.rank << " of " << options.world_size << " at "
          << options.rendezvous_file << " within " << options.timeout_s << " s: ";
  const std::string missing = MissingRanks(store, options.world_size);
  message << (missing.empty() ? FirstLine(what) : "these ranks have not come:" + missing);
  return message.str();
}

std::string FirstLine(const char* message) {
  const std::string text(message);
  return text.substr(0, text.find('\n'));
}

std::string CallFailure(const char* op, int call, const GroupOptions& options, const char* what) {
  return std::string(op) + " (call " + std::to_string(call) + " of rank " +
         std::to_string(options.rank) + " of " + std::to_string(options.world_size) +
         "): " + FirstLine(what);
}

}  // namespace trainwreck
