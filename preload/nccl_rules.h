// What the shim of NCCL does to which calls: rules, read from one line of text, and the counting of
// calls that decides when each of them acts. Plain C++: the shim is loaded into programs of any
// kind.
//
//     op=all_reduce call=12 ranks=1 do=delay ms=300; op=any call=40 calls=2 do=error code=3
//
// Rules are separated by semicolons, their fields by spaces:
//
//     do        delay, drop, error, reorder, fewer, retype (needed)
//     op        all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, send, recv,
//               group_start, group_end, or any (the default): one of those that move data
//     call      the first call to act on, counted by op in each process from 0; default 0
//     calls     how many calls from there on; 0: all; default 1
//     ranks     "0,2": act on these alone; default: all
//     ms        of delay: how long the call is held back; default 1000
//     code      of error: the ncclResult_t that is returned, while nothing is called; default 3, an
//               internal error
//     elements  of fewer: by how many the count is reduced; default 1
//     datatype  of retype: the ncclDataType_t that takes the place of the program's; default 6,
//               half precision
//     id        repeated in the evidence
#pragma once

#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainwreck::preload {

enum class NcclOp {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSend,
  kRecv,
  kGroupStart,
  kGroupEnd,
};
std::string_view NameOf(NcclOp op);
inline bool MovesData(NcclOp op) { return op != NcclOp::kGroupStart && op != NcclOp::kGroupEnd; }

enum class NcclAction { kDelay, kDrop, kError, kReorder, kFewer, kRetype };
std::string_view NameOf(NcclAction action);

struct NcclRule {
  std::string id;
  NcclAction action = NcclAction::kDelay;
  bool any_op = true;
  NcclOp op = NcclOp::kAllReduce;  // unless any
  long first_call = 0;
  long calls = 1;  // 0: all
  std::vector<int> ranks;
  long delay_ms = 1000;
  int code = 3;
  std::size_t elements = 1;
  int datatype = 6;

  bool ActsOnRank(int rank) const;
};

class NcclRuleError : public std::exception {
 public:
  explicit NcclRuleError(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

// Throws NcclRuleError: a fault that is misspelt must not become a healthy run.
std::vector<NcclRule> ParseNcclRules(const std::string& text);

// Bytes of an element of this ncclDataType_t; 0: an unknown one.
std::size_t BytesOfDatatype(int datatype);

// Counts calls. Threads may share it.
class NcclRules {
 public:
  explicit NcclRules(std::vector<NcclRule> rules)
      : rules_(std::move(rules)), seen_(rules_.size()) {}

  struct Match {
    const NcclRule* rule;
    long call;  // by the rule's own count
  };
  // Those that act on this call; counts it.
  std::vector<Match> Count(NcclOp op, int rank);

 private:
  const std::vector<NcclRule> rules_;
  std::mutex mutex_;
  std::vector<long> seen_;
};

}  // namespace trainwreck::preload
