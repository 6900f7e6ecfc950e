#include "trainer/ranks/side_stream.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace trainwreck {
namespace {

c10::Stream CurrentStream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

SideStream::Mark EndOf(const c10::Stream& stream) {
  auto mark = std::make_shared<c10::Event>(stream.device_type());
  mark->record(stream);
  return mark;
}

}  // namespace

SideStream::SideStream(at::Device device) {
  if (device.is_cpu()) return;
  stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

SideStream::Mark SideStream::Here() const {
  return stream_ ? EndOf(CurrentStream(stream_->device())) : nullptr;
}

void SideStream::Run(const Mark& after, const std::vector<at::Tensor>& used,
                     const std::function<void()>& work) {
  if (!stream_) return work();
  const c10::StreamGuard guard(*stream_);
  after->block(*stream_);
  for (const at::Tensor& tensor : used) tensor.record_stream(*stream_);
  work();
  end_ = EndOf(*stream_);
}

void SideStream::Join() const {
  if (end_) end_->block(CurrentStream(stream_->device()));
}

}  // namespace trainwreck
