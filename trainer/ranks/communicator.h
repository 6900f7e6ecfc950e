// Collectives over the ranks of a run. One rank uses MakeLocalCommunicator. Several ranks, each a
// process, use MakeGlooCommunicator, which meets its peers through a file. MakeTracedCommunicator
// wraps either and reports a fingerprint of every call before it blocks, so that after a hang the
// waiting call is the trace's last record.
//
//   auto communicator = MakeTracedCommunicator(
//       MakeGlooCommunicator({.rank = 0, .world_size = 2, .rendezvous_file = plan.rendezvous}),
//       [&](int call, const std::string& op, const std::string& shape, const std::string& dtype) {
//         sink.Collective(call, op, shape, dtype);
//       });
//
// End a healthy run with a Barrier() before the communicator is destroyed: a rank that leaves while
// a peer is still in its last collective can take that peer down.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "trainer/parts.h"

namespace trainwreck {

// World size 1: every call returns at once and changes nothing.
std::unique_ptr<Communicator> MakeLocalCommunicator();

// CPU tensors: over the loopback interface where all ranks are on this machine (IsLocalGroup), else
// over the interface GLOO_SOCKET_IFNAME or, without that, the one that this machine's name stands
// for, as in PyTorch. Blocks until all ranks are there. Starts threads, so fork before calling it.
// Throws std::runtime_error with op, call and rank when a peer is gone or the timeout passes; a
// rendezvous that times out names the ranks that did not come. After a failed call the group is of
// no more use. Ranks whose calls differ are not told so here (some pairs even return wrong sums in
// silence): compare the fingerprints.
std::unique_ptr<Communicator> MakeGlooCommunicator(const GroupOptions& options);

// `call` counts this rank's calls from 0. `op` is "all_reduce", "all_reduce_max", "all_reduce_min",
// "broadcast", "broadcast_from_1" (from another rank than 0), "reduce", "reduce_to_1" or "barrier";
// `shape` as in "[64,3]"; `dtype` as in "float32". A barrier has "[]" and "".
using FingerprintSink = std::function<void(int call, const std::string& op,
                                           const std::string& shape, const std::string& dtype)>;
// Told when a call has returned, or has thrown.
using CallEndSink = std::function<void(int call, bool failed)>;

// Compares operation, shape and dtype of every call over the ranks before it is made, by one small
// all-reduce. Where they differ, every rank throws std::runtime_error, which names what each calls;
// the call itself is not made.
std::unique_ptr<Communicator> MakeCheckedCommunicator(std::unique_ptr<Communicator> inner);

std::unique_ptr<Communicator> MakeTracedCommunicator(std::unique_ptr<Communicator> inner,
                                                     FingerprintSink sink,
                                                     CallEndSink ended = nullptr);

const char* OpName(Reduction reduction);
std::string BroadcastName(int root);
std::string ReduceName(int root);
std::string ShapeText(const at::Tensor& tensor);
std::string DtypeText(const at::Tensor& tensor);

}  // namespace trainwreck
