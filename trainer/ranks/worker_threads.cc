#include "trainer/ranks/worker_threads.h"

#include <utility>

namespace trainwreck {

WorkerThreads::WorkerThreads(std::int64_t threads) {
  for (std::int64_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Work(stop); });
  }
}

WorkerThreads::~WorkerThreads() {
  for (std::jthread& thread : threads_) thread.request_stop();  // all, before the first is joined
}

void WorkerThreads::Add(Task task) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
  }
  added_.notify_one();
}

void WorkerThreads::Work(const std::stop_token& stop) {
  while (true) {
    std::unique_lock lock(mutex_);
    const bool has_task = added_.wait(lock, stop, [this] { return !waiting_.empty(); });
    if (!has_task || stop.stop_requested()) return;
    Task task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
  }
}

}  // namespace trainwreck
