// A stream of a device for work beside that of the stream a thread is at. On the CPU there is no
// such thing: work is done when a call returns. Not run on a GPU yet.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

class SideStream {
 public:
  explicit SideStream(at::Device device);

  // What the calling thread has queued on its own stream so far.
  using Mark = std::shared_ptr<c10::Event>;
  Mark Here() const;

  // Makes `work`, in the calling thread, with this as its stream: what it queues begins behind the
  // mark. The memory of `used` is not given to other tensors before all of that is done.
  void Run(const Mark& after, const std::vector<at::Tensor>& used,
           const std::function<void()>& work);

  // What the calling thread queues from now on begins behind what Run() has queued. Not at the same
  // time as Run().
  void Join() const;

 private:
  std::optional<c10::Stream> stream_;  // empty: of the CPU
  Mark end_;                           // of what Run() has queued
};

}  // namespace trainwreck
