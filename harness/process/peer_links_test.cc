#include "harness/process/peer_links.h"

#include <gtest/gtest.h>

#include <sstream>

namespace trainwreck {
namespace peer_links_test {

using Texts = std::vector<std::string>;

// As /proc/net/tcp of a rank whose peer's link is cut; but for the last lines, which have no answer
// for a shorter time, wait for room at the peer, and are not connected yet.
TEST(PeerLinksTest, ReadsWhatIsNotAcknowledged) {
  std::istringstream table(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0100007F:7345 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
      "11 1 0000000000000000 100 0 0 10 0\n"
      "   1: 0100000A:B3F2 0200000A:9C40 01 00000D48:00000000 01:00000168 00000005     0        0 "
      "12 2 0000000000000000 6528 4 0 1 7\n"
      "   2: 0100000A:B3F4 0300000A:9C40 01 00000D48:00000000 01:00000168 00000001     0        0 "
      "13 2 0000000000000000 6528 4 0 1 7\n"
      "   3: 0100000A:B3F6 0300000A:9C40 01 00000D48:00000000 04:00000168 00000006     0        0 "
      "14 2 0000000000000000 6528 4 0 1 7\n"
      "   4: 0100000A:B3F8 0300000A:9C40 02 00000D48:00000000 01:00000168 00000006     0        0 "
      "15 2 0000000000000000 6528 4 0 1 7\n");
  const std::vector<UnansweredSocket> found = ReadUnansweredSockets(table);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].peer, "10.0.0.2");
  EXPECT_EQ(found[0].inode, 12);
}

TEST(PeerLinksTest, ReadsLongAddresses) {
  const std::string rest =
      " 01 00000D48:00000000 01:00000168 00000004     0        0 12 2 0000000000000000 6528\n";
  std::istringstream table("names\n 0: 0:0 0000000000000000FFFF00000200000A:9C40" + rest +
                           " 1: 0:0 B80D0120000000000000000001000000:9C40" + rest +
                           " 2: 0:0 B80D:9C40" + rest + " 3: cut");
  const std::vector<UnansweredSocket> found = ReadUnansweredSockets(table);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].peer, "10.0.0.2");
  EXPECT_EQ(found[1].peer, "2001:db8::1");
}

TEST(PeerLinksTest, NamesAnInterfaceThatIsNotThere) {
  std::set<std::string> interfaces;
  for (const auto& [address, interface] : OwnAddresses()) interfaces.insert(interface);
  EXPECT_EQ(FirstWithoutLink(interfaces), "");
  interfaces.insert("none");
  EXPECT_EQ(FirstWithoutLink(interfaces), "none");
}

GuardedRank RankOn(int machine, const Texts& unanswered) {
  GuardedRank guarded;
  guarded.host = "n" + std::to_string(machine);
  guarded.addresses = {"10.0.0." + std::to_string(machine), "172.17.0.1"};
  guarded.unanswered = unanswered;
  return guarded;
}

using Guarded = std::map<int, GuardedRank>;

TEST(PeerLinksTest, TheEndOfAllDeadLinksIsCutOff) {
  const Guarded ring = {
      {0, RankOn(1, {"10.0.0.2"})}, {1, RankOn(2, {"10.0.0.3"})}, {2, RankOn(3, {})}};
  const std::vector<DeadLink> links = DeadLinks(ring);
  EXPECT_EQ(links, (std::vector<DeadLink>{{0, 1}, {1, 2}}));
  EXPECT_EQ(CutOffRanks(ring, links), (std::set<int>{1}));
  EXPECT_EQ(DescribeDeadLinks(ring, links), "rank 0 on n1 gets no answer from rank 1 on n2");
}

TEST(PeerLinksTest, AllRanksOfAMachineAreCutOff) {
  const Guarded six = {{0, RankOn(1, {"10.0.0.3"})}, {1, RankOn(1, {"10.0.0.3"})},
                       {2, RankOn(2, {"10.0.0.3"})}, {3, RankOn(2, {})},
                       {4, RankOn(3, {})},           {5, RankOn(3, {})}};
  const std::vector<DeadLink> links = DeadLinks(six);
  EXPECT_EQ(links, (std::vector<DeadLink>{{0, 4}, {2, 4}}));
  EXPECT_EQ(CutOffRanks(six, links), (std::set<int>{4, 5}));
}

TEST(PeerLinksTest, OfOneLinkItIsTheEndWhoseInterfaceIsDown) {
  Guarded ring = {{0, RankOn(1, {"10.0.0.2"})}, {1, RankOn(2, {"10.0.0.1"})}, {2, RankOn(3, {})}};
  const std::vector<DeadLink> links = DeadLinks(ring);
  EXPECT_EQ(links, (std::vector<DeadLink>{{0, 1}, {1, 0}}));
  EXPECT_TRUE(CutOffRanks(ring, links).empty());
  ring[2].down = "eth1";  // it has no part in it
  EXPECT_TRUE(CutOffRanks(ring, links).empty());
  ring[1].down = "eth0";
  EXPECT_EQ(CutOffRanks(ring, links), (std::set<int>{1}));
  ring[0].down = "eth0";
  EXPECT_TRUE(CutOffRanks(ring, links).empty());
}

TEST(PeerLinksTest, OfTwoHalvesNoMachineIsCutOff) {
  const Guarded four = {{0, RankOn(1, {"10.0.0.3", "10.0.0.4"})},
                        {1, RankOn(2, {"10.0.0.3", "10.0.0.4"})},
                        {2, RankOn(3, {})},
                        {3, RankOn(4, {})}};
  EXPECT_TRUE(CutOffRanks(four, DeadLinks(four)).empty());
}

TEST(PeerLinksTest, OthersThanTheRanksMachinesDoNotCount) {
  Guarded guarded = {{0, RankOn(1, {"172.17.0.1", "192.0.2.1", "10.0.0.1"})}, {1, RankOn(2, {})}};
  EXPECT_TRUE(DeadLinks(guarded).empty());
  guarded[0].unanswered = {"10.0.0.2"};
  guarded[0].state = "ended";
  EXPECT_TRUE(DeadLinks(guarded).empty());
  EXPECT_EQ(DescribeDeadLinks(guarded, {}), "");
}

}  // namespace peer_links_test
}  // namespace trainwreck
