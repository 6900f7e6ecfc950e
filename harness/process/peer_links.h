// Which machine is cut off, as the ranks' own connections show: the kernel of a machine repeats
// what a peer does not acknowledge, and counts that. Guards tell it of their ranks
// (rank_guards.h), without a connection of their own.
#pragma once

#include <istream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/process/rank_guards.h"

namespace trainwreck {

// Of /proc/net/tcp or tcp6: a connection whose peer has acknowledged nothing for some seconds.
struct UnansweredSocket {
  std::string peer;  // its address: 10.0.0.2
  long inode = 0;
};
std::vector<UnansweredSocket> ReadUnansweredSockets(std::istream& table);

// The addresses of peers to which these processes of one machine have such connections, sorted.
std::vector<std::string> UnansweredPeers(const std::vector<int>& pids);

// The addresses of this machine, without loopback, each with the interface that has it. Only
// interfaces that have a link: that are up, with a cable in them.
std::map<std::string, std::string> OwnAddresses();

// The first of these interfaces that has no link now; empty: all have one.
std::string FirstWithoutLink(const std::set<std::string>& interfaces);

// A rank of one machine that is not answered by another machine, where the other rank is.
struct DeadLink {
  int rank = 0;
  int peer = 0;
  bool operator==(const DeadLink&) const = default;
};

// One for each pair of machines and direction, of ranks that have not ended.
std::vector<DeadLink> DeadLinks(const std::map<int, GuardedRank>& guarded);

// The ranks of the machine that is an end of all links. Of a link between two machines it is that
// one whose interface is down; if both are, or none, nobody knows which end is cut off.
std::set<int> CutOffRanks(const std::map<int, GuardedRank>& guarded,
                          const std::vector<DeadLink>& links);

// Of the first one: "rank 0 on n1 gets no answer from rank 1 on n2". Empty: no link is dead.
std::string DescribeDeadLinks(const std::map<int, GuardedRank>& guarded,
                              const std::vector<DeadLink>& links);

}  // namespace trainwreck
