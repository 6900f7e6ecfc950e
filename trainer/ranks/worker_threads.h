// Threads that work beside the training loop: the loader's, and the one that reduces gradients.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace trainwreck {

class WorkerThreads {
 public:
  using Task = std::packaged_task<void()>;

  explicit WorkerThreads(std::int64_t threads);
  // Waits for the tasks in progress; those that are not begun are dropped.
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  // Tasks begin in the order of the calls. What one throws is in its future.
  void Add(Task task);

 private:
  void Work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any added_;
  std::deque<Task> waiting_;
  std::vector<std::jthread> threads_;
};

}  // namespace trainwreck
