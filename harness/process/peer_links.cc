#include "harness/process/peer_links.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

namespace trainwreck {
namespace {

constexpr int kEstablished = 1;     // of a connection's state, in the kernel's numbers
constexpr int kRetransmitting = 1;  // of its timer; one that waits for room at its peer has another
constexpr int kRepeats = 4;         // without an answer: some 3 s between machines of one network
constexpr std::size_t kWordDigits = 8;

std::string TextOf(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  return inet_ntop(family, address, text, sizeof text) == nullptr ? "" : text;
}

// One of four bytes in the form of sixteen is as the one of four.
std::string TextOf(const in6_addr& address) {
  return IN6_IS_ADDR_V4MAPPED(&address) ? TextOf(AF_INET, &address.s6_addr[12])
                                        : TextOf(AF_INET6, &address);
}

// "0200000A:1F90", as words of the machine's byte order; empty: it is none.
std::string AddressOf(const std::string& field) {
  const std::string digits = field.substr(0, field.find(':'));
  std::array<std::uint32_t, 4> words{};
  if (digits.size() != kWordDigits && digits.size() != words.size() * kWordDigits) return "";
  for (std::size_t i = 0; i * kWordDigits < digits.size(); ++i) {
    const std::string word = digits.substr(i * kWordDigits, kWordDigits);
    words[i] = static_cast<std::uint32_t>(std::strtoul(word.c_str(), nullptr, 16));
  }
  if (digits.size() == kWordDigits) return TextOf(AF_INET, words.data());
  in6_addr address;
  std::memcpy(&address, words.data(), sizeof address);
  return TextOf(address);
}

int Hex(const std::string& text) {
  return static_cast<int>(std::strtol(text.c_str(), nullptr, 16));
}

// "socket:[4711]" -> 4711
std::set<long> SocketsOf(int pid) {
  std::set<long> inodes;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  DIR* const entries = opendir(folder.c_str());
  if (entries == nullptr) return inodes;
  while (const dirent* entry = readdir(entries)) {
    char target[64] = "";
    const std::string path = folder + "/" + entry->d_name;
    if (readlink(path.c_str(), target, sizeof target - 1) <= 0) continue;
    if (std::strncmp(target, "socket:[", 8) == 0) inodes.insert(std::atol(target + 8));
  }
  closedir(entries);
  return inodes;
}

// The name of the one machine that has the address.
std::optional<std::string> HostWith(const std::map<int, GuardedRank>& guarded,
                                    const std::string& address) {
  std::set<std::string> hosts;
  for (const auto& [rank, guard] : guarded) {
    if (std::count(guard.addresses.begin(), guard.addresses.end(), address) > 0)
      hosts.insert(guard.host);
  }
  if (hosts.size() != 1) return std::nullopt;  // as those of bridges, which many machines have
  return *hosts.begin();
}

}  // namespace

std::vector<UnansweredSocket> ReadUnansweredSockets(std::istream& table) {
  std::vector<UnansweredSocket> found;
  std::string line;
  std::getline(table, line);  // the names of its columns
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number, own, peer, state, queues, timer, repeats, user, timeout;
    long inode = 0;
    if (!(fields >> number >> own >> peer >> state >> queues >> timer >> repeats >> user >>
          timeout >> inode))
      continue;
    const bool is_repeating = Hex(timer) == kRetransmitting && Hex(repeats) >= kRepeats;
    if (Hex(state) != kEstablished || !is_repeating) continue;
    const std::string address = AddressOf(peer);
    if (!address.empty()) found.push_back({address, inode});
  }
  return found;
}

std::vector<std::string> UnansweredPeers(const std::vector<int>& pids) {
  if (pids.empty()) return {};
  std::vector<UnansweredSocket> sockets;
  for (const char* name : {"tcp", "tcp6"}) {
    std::ifstream table("/proc/" + std::to_string(pids.front()) + "/net/" + name);
    for (UnansweredSocket& socket : ReadUnansweredSockets(table))
      sockets.push_back(std::move(socket));
  }
  if (sockets.empty()) return {};  // nearly always
  std::set<long> own;
  for (const int pid : pids) own.merge(SocketsOf(pid));
  std::set<std::string> peers;
  for (const UnansweredSocket& socket : sockets) {
    if (own.contains(socket.inode)) peers.insert(socket.peer);
  }
  return {peers.begin(), peers.end()};
}

std::map<std::string, std::string> OwnAddresses() {
  std::map<std::string, std::string> addresses;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool has_link = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_RUNNING) != 0;
    if (one->ifa_addr == nullptr || !has_link || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (one->ifa_addr->sa_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
      addresses.emplace(TextOf(AF_INET, &address->sin_addr), one->ifa_name);
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
      addresses.emplace(TextOf(address->sin6_addr), one->ifa_name);
    }
  }
  freeifaddrs(all);
  return addresses;
}

std::string FirstWithoutLink(const std::set<std::string>& interfaces) {
  std::set<std::string> left = interfaces;
  for (const auto& [address, interface] : OwnAddresses()) left.erase(interface);
  return left.empty() ? "" : *left.begin();
}

std::vector<DeadLink> DeadLinks(const std::map<int, GuardedRank>& guarded) {
  std::vector<DeadLink> links;
  std::set<std::pair<std::string, std::string>> told;
  for (const auto& [rank, guard] : guarded) {
    if (guard.state == "ended") continue;
    for (const std::string& address : guard.unanswered) {
      const auto host = HostWith(guarded, address);
      if (!host || *host == guard.host || !told.emplace(guard.host, *host).second) continue;
      const auto peer = std::find_if(guarded.begin(), guarded.end(),
                                     [&](const auto& one) { return one.second.host == *host; });
      links.push_back({rank, peer->first});
    }
  }
  return links;
}

std::set<int> CutOffRanks(const std::map<int, GuardedRank>& guarded,
                          const std::vector<DeadLink>& links) {
  if (links.empty()) return {};
  const auto host = [&](int rank) { return guarded.at(rank).host; };
  std::set<std::string> ends = {host(links[0].rank), host(links[0].peer)};  // of all links
  for (const DeadLink& link : links) {
    std::erase_if(
        ends, [&](const auto& end) { return end != host(link.rank) && end != host(link.peer); });
  }
  if (ends.size() == 2) {
    std::set<std::string> up = ends;
    for (const auto& [rank, guard] : guarded) {
      if (!guard.down.empty()) up.erase(guard.host);
    }
    for (const std::string& end : up) ends.erase(end);
  }
  std::set<int> cut_off;
  for (const auto& [rank, guard] : guarded) {
    if (ends.size() == 1 && ends.contains(guard.host)) cut_off.insert(rank);
  }
  return cut_off;
}

std::string DescribeDeadLinks(const std::map<int, GuardedRank>& guarded,
                              const std::vector<DeadLink>& links) {
  if (links.empty()) return "";
  const auto text = [&](int rank) {
    return "rank " + std::to_string(rank) + " on " + guarded.at(rank).host;
  };
  return text(links.front().rank) + " gets no answer from " + text(links.front().peer);
}

}  // namespace trainwreck
