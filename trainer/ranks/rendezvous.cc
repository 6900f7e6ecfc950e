#include "trainer/ranks/rendezvous.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

namespace trainwreck {
namespace {

// That the one who serves the store stays after a failure: the others may be asking who is missing.
constexpr std::chrono::seconds kFarewell{1};

std::string ArrivalKey(int rank) { return "arrived/" + std::to_string(rank); }

// Which ranks never came to the rendezvous; empty: all did.
std::vector<int> MissingRanks(c10d::Store& store, int world_size) {
  std::vector<int> missing;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!store.check({ArrivalKey(rank)})) missing.push_back(rank);
  }
  return missing;
}

std::string PlaceOf(const GroupOptions& options) {
  return options.rendezvous_file.empty() ? options.address + ":" + std::to_string(options.port)
                                         : options.rendezvous_file;
}

std::string Message(const GroupOptions& options, const std::vector<int>& missing,
                    const std::string& what) {
  std::ostringstream message;
  message << "rendezvous of rank " << options.rank << " of " << options.world_size << " at "
          << PlaceOf(options) << " within " << options.timeout_s << " s: ";
  if (missing.empty()) {
    message << what;
  } else {
    message << "these ranks have not come:";
    for (const int rank : missing) message << ' ' << rank;
  }
  return message.str();
}

// Whether the ranks meet at a store of rank 0.
bool RankZeroServesStore(const GroupOptions& options) {
  // torchrun serves the store itself, and says so.
  const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  const bool has_agent = agent != nullptr && std::string(agent) == "True";
  return options.rendezvous_file.empty() && !has_agent;
}

bool ServesStore(const GroupOptions& options) {
  return options.rank == 0 && RankZeroServesStore(options);
}

c10::intrusive_ptr<c10d::Store> OpenStore(const GroupOptions& options) {
  if (!options.rendezvous_file.empty()) {
    return c10::make_intrusive<c10d::FileStore>(options.rendezvous_file, options.world_size);
  }
  c10d::TCPStoreOptions tcp;
  tcp.port = static_cast<std::uint16_t>(options.port);
  tcp.isServer = ServesStore(options);
  tcp.waitWorkers = false;  // who is missing is for us to say
  tcp.timeout = Milliseconds(options.timeout_s);
  try {
    return c10::make_intrusive<c10d::TCPStore>(options.address, tcp);
  } catch (const std::exception& error) {
    throw RendezvousError(options, {}, FirstLine(error.what()));
  }
}

}  // namespace

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(seconds * 1e3)));
}

bool IsLocalGroup(const GroupOptions& options) {
  if (options.ranks_here > 0 && options.ranks_here < options.world_size) return false;
  const std::string& address = options.address;
  return !options.rendezvous_file.empty() || address.empty() || address == "localhost" ||
         address == "::1" || address.starts_with("127.");
}

c10::intrusive_ptr<c10d::Store> Arrive(const GroupOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw std::runtime_error("rank " + std::to_string(options.rank) + " of " +
                             std::to_string(options.world_size) + " ranks does not exist");
  }
  auto store = OpenStore(options);
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
    throw RendezvousFailure(store, options, error.what());
  }
}

RendezvousError RendezvousFailure(c10d::Store& store, const GroupOptions& options,
                                  const char* what) {
  std::vector<int> missing;
  std::string words = FirstLine(what);
  try {
    missing = MissingRanks(store, options.world_size);
  } catch (const std::exception& error) {
    if (!RankZeroServesStore(options)) throw;
    words = "rank 0, which serves the store, is gone: " + FirstLine(error.what());
  }
  if (ServesStore(options)) std::this_thread::sleep_for(kFarewell);
  return {options, std::move(missing), words};
}

RendezvousError::RendezvousError(const GroupOptions& options, std::vector<int> missing,
                                 const std::string& what)
    : std::runtime_error(Message(options, missing, what)),
      where_(PlaceOf(options)),
      missing_(std::move(missing)) {}

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
