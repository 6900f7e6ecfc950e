#include "harness/process/spawn.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "harness/process/spawn_client.h"

namespace trainwreck {
namespace {

constexpr int kPatienceSeconds = 20;

std::string TemporaryFile() {
  std::string path = testing::TempDir() + "/spawn.XXXXXX";
  close(mkstemp(path.data()));
  return path;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool IsAlive(int pid) { return kill(pid, 0) == 0; }

bool Dies(int pid) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
  while (IsAlive(pid)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 2);
  }
  return true;
}

// Leaves a process that is no child of ours, in another session and deaf to polite signals; its pid
// goes to standard output.
void LeaveDaemon() {
  if (fork() != 0) {
    wait(nullptr);
    return;
  }
  setsid();
  if (fork() == 0) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    std::printf("%d\n", getpid());
    std::fflush(stdout);
    for (;;) pause();
  }
  _exit(0);
}

// What the tests' servers do for a request without a command.
int ChildMainOfTests(const SpawnRequest& request) {
  const std::string mode = std::getenv("MODE") != nullptr ? std::getenv("MODE") : "";
  if (mode == "throw") throw std::runtime_error("thrown");
  if (mode == "kill") raise(SIGKILL);
  if (mode == "sleep") {
    for (;;) pause();
  }
  if (mode == "daemon") LeaveDaemon();
  if (mode == "daemon_sleep") {
    LeaveDaemon();
    for (;;) pause();
  }
  if (mode == "helper" && fork() == 0) {  // ends by itself, a little late
    poll(nullptr, 0, 20);
    _exit(0);
  }
  if (mode == "flood") {
    const std::string block(1 << 16, 'x');
    while (write(1, block.data(), block.size()) > 0) {
    }
  }
  if (mode == "inspect") {
    int fds = 0;
    DIR* folder = opendir("/proc/self/fd");
    while (const dirent* entry = readdir(folder)) fds += entry->d_name[0] != '.';
    closedir(folder);
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, nullptr, &blocked);
    int odd = 0;
    for (int number = 1; number < 32; ++number) {
      struct sigaction action;
      sigaction(number, nullptr, &action);
      odd += sigismember(&blocked, number) == 1 || action.sa_handler != SIG_DFL;
    }
    std::printf("%d %d %d\n", fds - 1, odd, getpgrp() == getpid());
  }
  return request.id + 10;
}

class SpawnTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    server_ = fork();
    if (server_ == 0) {
      close(ends[0]);
      signal(SIGUSR1, SIG_IGN);  // must not reach the children
      _exit(ServeSpawns(ends[1], ChildMainOfTests));
    }
    close(ends[1]);
    socket_ = ends[0];
    EXPECT_TRUE(Await(socket_, lines_, "ready").contains("ready"));
  }
  void TearDown() override { Close(); }

  void Close() {
    if (socket_ < 0) return;
    close(socket_);
    socket_ = -1;
    int status = 0;
    EXPECT_EQ(waitpid(server_, &status, 0), server_);
    EXPECT_EQ(status, 0);
  }

  static void SendTo(int fd, const Json& message) {
    const std::string line = message.dump() + "\n";
    ASSERT_EQ(send(fd, line.data(), line.size(), MSG_NOSIGNAL), static_cast<ssize_t>(line.size()));
  }
  void Send(const Json& message) { SendTo(socket_, message); }

  // The next message that has `key`; others on the way are kept in passed_.
  Json Await(int fd, LineBuffer& lines, const std::string& key) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
    while (std::chrono::steady_clock::now() < deadline) {
      std::string line;
      while (lines.Next(line)) {
        Json message = Json::parse(line);
        if (message.contains(key)) return message;
        passed_.push_back(std::move(message));
      }
      pollfd polled{fd, POLLIN, 0};
      poll(&polled, 1, 100);
      char bytes[4096];
      const ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
      if (got == 0) break;
      if (got > 0) lines.Append({bytes, static_cast<std::size_t>(got)});
    }
    ADD_FAILURE() << "no message with " << key;
    return Json::object();
  }
  Json Await(const std::string& key) { return Await(socket_, lines_, key); }

  SpawnRequest Request(int id, const std::string& mode, std::vector<std::string> command = {}) {
    SpawnRequest request;
    request.id = id;
    request.command = std::move(command);
    request.environment["MODE"] = mode;
    request.stdout_path = out_ = TemporaryFile();
    request.stderr_path = err_ = TemporaryFile();
    return request;
  }

  // Our end of the socket of a new guard.
  int OpenGuard() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    std::string line = "{\"guard\":true}\n";
    iovec data{line.data(), line.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &ends[1], sizeof(int));
    EXPECT_GT(sendmsg(socket_, &message, 0), 0);
    close(ends[1]);
    return ends[0];
  }

  int DaemonPid() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
    while (ReadAll(out_).find('\n') == std::string::npos) {
      if (std::chrono::steady_clock::now() > deadline) return -1;
      poll(nullptr, 0, 2);
    }
    return std::stoi(ReadAll(out_));
  }

  int socket_ = -1;
  pid_t server_ = -1;
  LineBuffer lines_;
  std::vector<Json> passed_;
  std::string out_;
  std::string err_;
};

TEST_F(SpawnTest, ForksAndExecs) {
  Send(ToJson(Request(1, "")));
  EXPECT_EQ(Await("spawned")["spawned"], 1);
  const Json forked = Await("exited");
  EXPECT_EQ(forked["exited"], 1);
  EXPECT_EQ(forked["code"], 11);
  EXPECT_EQ(forked["signal"], 0);
  EXPECT_GT(forked["peak_memory_bytes"].get<std::int64_t>(), 0);
  Send(ToJson(Request(2, "loud", {"/bin/sh", "-c", "echo $MODE; echo oops >&2; exit 5"})));
  EXPECT_EQ(Await("exited")["code"], 5);
  EXPECT_EQ(ReadAll(out_), "loud\n");
  EXPECT_EQ(ReadAll(err_), "oops\n");
}

TEST_F(SpawnTest, ReportsSignalsAndExceptions) {
  Send(ToJson(Request(1, "kill")));
  const Json killed = Await("exited");
  EXPECT_EQ(killed["code"], -1);
  EXPECT_EQ(killed["signal"], SIGKILL);
  Send(ToJson(Request(2, "throw")));
  EXPECT_EQ(Await("exited")["code"], 1);
  EXPECT_EQ(ReadAll(err_), "thrown\n");
}

TEST_F(SpawnTest, SaysWhyItCannotStart) {
  Send(ToJson(Request(1, "", {"/no/such/program"})));
  EXPECT_EQ(Await("spawned")["error"], "No such file or directory: /no/such/program");
  SpawnRequest request = Request(2, "");
  request.stderr_path = "/no/such/folder/err";
  Send(ToJson(request));
  EXPECT_EQ(Await("spawned")["error"], "No such file or directory: /no/such/folder/err");
}

TEST_F(SpawnTest, ChildrenStartClean) {
  Send(ToJson(Request(1, "inspect")));
  Await("exited");
  EXPECT_EQ(ReadAll(out_), "3 0 1\n");  // descriptors, odd signals, leads its group
}

TEST_F(SpawnTest, KillsOneSpawn) {
  Send(ToJson(Request(1, "sleep")));
  Send({{"kill", 1}, {"signal", SIGTERM}});
  EXPECT_EQ(Await("exited")["signal"], SIGTERM);
  Send({{"kill", 1}, {"signal", SIGTERM}});  // gone: must reach nobody
  Send(ToJson(Request(2, "")));
  EXPECT_EQ(Await("exited")["exited"], 2);
}

TEST_F(SpawnTest, BoundsTheSizeOfFiles) {
  SpawnRequest request = Request(1, "flood");
  request.file_bytes = 1 << 20;
  Send(ToJson(request));
  EXPECT_EQ(Await("exited")["signal"], SIGXFSZ);
  EXPECT_EQ(ReadAll(out_).size(), std::size_t{1} << 20);
}

TEST_F(SpawnTest, ReapsOrphansThatHide) {
  Send(ToJson(Request(1, "daemon")));
  Await("exited");
  const int daemon = DaemonPid();
  ASSERT_GT(daemon, 0);
  EXPECT_TRUE(IsAlive(daemon));
  Send({{"reap", true}, {"grace_ms", 0}});
  EXPECT_EQ(Await("orphan")["orphan"], daemon);
  EXPECT_EQ(Await("reaped")["reaped"], 1);
  EXPECT_FALSE(IsAlive(daemon));
}

// As srun has its ranks started by slurmd: no descendant of a server.
pid_t StartElsewhere(const char* run) {
  const pid_t pid = fork();
  if (pid == 0) {
    setenv(kRunVariable, run, 1);
    execlp("sleep", "sleep", "600", nullptr);
    _exit(127);
  }
  return pid;
}

bool WasKilled(pid_t pid) {
  int status = 0;
  return waitpid(pid, &status, WNOHANG) == pid && WIFSIGNALED(status);
}

TEST_F(SpawnTest, KillsWhatADaemonStartedForTheRun) {
  const pid_t ours = StartElsewhere("/run/1"), others = StartElsewhere("/run/11");
  poll(nullptr, 0, 100);  // until both are what they will be
  SpawnRequest request = Request(1, "");
  request.command = {"true"};
  request.environment[kRunVariable] = "/run/1";
  Send(ToJson(request));
  Await("exited");
  EXPECT_TRUE(IsAlive(ours));
  Send({{"reap", true}, {"grace_ms", 0}});
  EXPECT_EQ(Await("orphan")["orphan"], ours);
  EXPECT_EQ(Await("reaped")["reaped"], 1);
  EXPECT_TRUE(WasKilled(ours));
  EXPECT_FALSE(WasKilled(others));
  kill(others, SIGKILL);
  waitpid(others, nullptr, 0);
}

// The launcher is killed: server and guard see it at the same moment.
TEST_F(SpawnTest, AServerThatEndsLetsItsGuardsKillWhatADaemonStarted) {
  const int guard = OpenGuard();
  LineBuffer lines;
  Await(guard, lines, "ready");
  const pid_t ours = StartElsewhere("/run/1");
  poll(nullptr, 0, 100);  // until it is what it will be
  SpawnRequest request = Request(1, "", {"sleep", "600"});
  request.environment[kRunVariable] = "/run/1";
  SendTo(guard, ToJson(request));
  const int launcher = Await(guard, lines, "spawned")["pid"];
  EXPECT_FALSE(WasKilled(ours));
  Close();  // waits for the server; the guard's socket is still open
  EXPECT_FALSE(IsAlive(launcher));
  EXPECT_TRUE(WasKilled(ours));
  kill(ours, SIGKILL);
  close(guard);
}

// Somebody may have exported a run's folder in the shell that the harness was called from.
TEST(ProcessesWithTest, SparesWhereTheCallerComesFrom) {
  const std::string parents = ReadAll("/proc/" + std::to_string(getppid()) + "/environ");
  std::string shared;  // an entry that our parent was started with, as we were
  for (char** entry = environ; *entry != nullptr && shared.empty(); ++entry) {
    const std::string text = std::string(*entry) + '\0';
    if (parents.find('\0' + text) != std::string::npos) shared = *entry;
  }
  ASSERT_NE(shared, "");
  const pid_t child = fork();
  if (child == 0) {
    execlp("sleep", "sleep", "600", nullptr);
    _exit(127);
  }
  poll(nullptr, 0, 100);  // until it is what it will be
  const std::vector<int> found = ProcessesWith({shared});
  EXPECT_EQ(std::count(found.begin(), found.end(), child), 1);
  EXPECT_EQ(std::count(found.begin(), found.end(), getpid()), 0);
  EXPECT_EQ(std::count(found.begin(), found.end(), getppid()), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(SpawnTest, GivesHelpersTimeToEnd) {
  Send(ToJson(Request(1, "helper")));
  Await("exited");
  Send({{"reap", true}, {"grace_ms", 20'000}});
  EXPECT_EQ(Await("reaped")["reaped"], 0);
}

TEST_F(SpawnTest, KillsEverythingWhenItsSocketCloses) {
  Send(ToJson(Request(1, "daemon_sleep")));
  const int rank = Await("spawned")["pid"];
  const int daemon = DaemonPid();
  ASSERT_GT(daemon, 0);
  Close();  // waits for the server
  EXPECT_FALSE(IsAlive(rank));
  EXPECT_FALSE(IsAlive(daemon));
}

TEST_F(SpawnTest, ChildrenDieWithAServerThatIsKilled) {
  Send(ToJson(Request(1, "sleep")));
  const int rank = Await("spawned")["pid"];
  kill(server_, SIGKILL);
  waitpid(server_, nullptr, 0);
  close(socket_);
  socket_ = -1;
  EXPECT_TRUE(Dies(rank));
}

TEST_F(SpawnTest, GuardsOwnTheirDescendants) {
  const int guard_socket = OpenGuard();
  LineBuffer lines;
  Await(guard_socket, lines, "ready");

  SendTo(guard_socket, ToJson(Request(1, "daemon_sleep")));
  const int rank = Await(guard_socket, lines, "spawned")["pid"];
  const int daemon = DaemonPid();
  ASSERT_GT(daemon, 0);
  // The guard is the rank's parent. Killed, it leaves its descendants to the first server.
  std::ifstream stat("/proc/" + std::to_string(rank) + "/stat");
  std::string skipped;
  int guard = 0;
  stat >> skipped >> skipped >> skipped >> guard;
  ASSERT_GT(guard, 1);
  ASSERT_NE(guard, server_);
  kill(guard, SIGKILL);
  EXPECT_TRUE(Dies(rank));
  EXPECT_TRUE(Dies(daemon));
  Send(ToJson(Request(2, "")));  // and the first server goes on
  EXPECT_EQ(Await("exited")["exited"], 2);
  close(guard_socket);
}

// As a run of many ranks begins: the answers to the first requests fill the socket before the last
// request is sent.
TEST(SpawnConnectionTest, SendsAnyNumberOfRequestsInARow) {
  constexpr int kRequests = 700;
  const auto server = SpawnServerProcess::Fork();
  ASSERT_TRUE(server->AwaitReady(1000 * kPatienceSeconds));
  SpawnConnection& connection = server->connection();
  alarm(30);  // a Send that never returns ends the test
  for (int id = 0; id < kRequests; ++id) {
    SpawnRequest request;
    request.id = id;
    request.command = {"/bin/true"};
    request.stdout_path = request.stderr_path = "/dev/null";
    request.environment["PADDING"] = std::string(1000, 'x');
    ASSERT_TRUE(connection.Send(ToJson(request)));
  }
  std::map<std::string, int> counts;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
  while (counts["exited"] < kRequests && std::chrono::steady_clock::now() < deadline) {
    pollfd polled{connection.fd(), POLLIN, 0};
    poll(&polled, 1, 1000);
    std::vector<Json> messages;
    ASSERT_TRUE(connection.Receive(messages));
    for (const Json& message : messages) {
      for (const char* name : {"spawned", "exited"}) counts[name] += message.contains(name);
    }
  }
  alarm(0);
  EXPECT_EQ(counts["spawned"], kRequests);
  EXPECT_EQ(counts["exited"], kRequests);
}

TEST(LineBufferTest, GivesWholeLines) {
  LineBuffer lines;
  std::string line;
  lines.Append("ab");
  EXPECT_FALSE(lines.Next(line));
  lines.Append("c\n\nde");
  ASSERT_TRUE(lines.Next(line));
  EXPECT_EQ(line, "abc");
  ASSERT_TRUE(lines.Next(line));
  EXPECT_EQ(line, "");
  EXPECT_FALSE(lines.Next(line));
  lines.Append("f\n");
  ASSERT_TRUE(lines.Next(line));
  EXPECT_EQ(line, "def");
}

}  // namespace
}  // namespace trainwreck
