#include "trainer/ranks/await_work.h"

#include <exception>
#include <future>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "trainer/ranks/rendezvous.h"

namespace trainwreck {
namespace {

constexpr std::chrono::microseconds kPollInterval(20);

std::string SecondsText(double seconds) {
  std::ostringstream text;
  text << seconds << " s";
  return text.str();
}

}  // namespace

bool AwaitWork(c10d::Work& work, double timeout_s, std::chrono::milliseconds suspicious,
               const std::function<void()>& suspect) {
  const auto began = std::chrono::steady_clock::now();
  bool is_suspected = false;
  while (!work.isCompleted()) {
    const auto waited = std::chrono::steady_clock::now() - began;
    if (waited > suspicious && !is_suspected) {
      suspect();
      is_suspected = true;
    }
    if (waited > Milliseconds(timeout_s)) {
      throw std::runtime_error("timed out after " + SecondsText(timeout_s) +
                               ": a peer is gone, stalled or makes another call");
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  if (const std::exception_ptr error = work.exception()) std::rethrow_exception(error);
  work.wait();
  return is_suspected;
}

void BoundedCall(double timeout_s, std::function<void()> call) {
  std::packaged_task<void()> task(std::move(call));
  std::future<void> done = task.get_future();
  std::thread(std::move(task)).detach();
  if (done.wait_for(Milliseconds(timeout_s)) != std::future_status::ready) {
    throw std::runtime_error("it still blocks after " + SecondsText(timeout_s));
  }
  done.get();
}

}  // namespace trainwreck
