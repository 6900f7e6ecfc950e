#include "harness/targets/output_tee.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "harness/text/files.h"

namespace trainwreck {
namespace output_tee_test {

// A child whose standard error is teed into a file, and goes on to a pipe that the test reads.
class OutputTeeTest : public testing::Test {
 protected:
  OutputTeeTest() {
    const char* tmp = std::getenv("TEST_TMPDIR");
    std::string name = std::string(tmp != nullptr ? tmp : "/tmp") + "/tee-XXXXXX";
    copy_ = std::string(mkdtemp(name.data())) + "/copy";
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    signal(SIGPIPE, SIG_IGN);
  }
  ~OutputTeeTest() override {
    if (child_ > 0) kill(child_, SIGKILL);
    if (child_ > 0) waitpid(child_, nullptr, 0);
    close(ends_[0]);
  }

  void Start(const char* command) {
    const int own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(ends_[1], STDERR_FILENO);
    tee_ = std::make_unique<OutputTee>(STDERR_FILENO, copy_);
    child_ = fork();
    if (child_ == 0) {
      signal(SIGPIPE, SIG_DFL);
      execlp("sh", "sh", "-c", command, nullptr);
      _exit(127);
    }
    tee_->Release();
    dup2(own, STDERR_FILENO);
    close(own);
    close(ends_[1]);
  }

  int AwaitEnd() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    return status;
  }

  std::string Passed() {
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string text;
    char bytes[1 << 12];
    for (ssize_t got; (got = read(ends_[0], bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<std::size_t>(got));
    return text;
  }

  std::string Copy() const { return ReadFile(copy_).value_or(""); }

  std::string copy_;
  int ends_[2];
  pid_t child_ = 0;
  std::unique_ptr<OutputTee> tee_;
};

TEST_F(OutputTeeTest, PassesOnAndKeeps) {
  Start("echo one >&2; echo two >&2");
  EXPECT_EQ(AwaitEnd(), 0);
  tee_->PassAll(1000);
  EXPECT_EQ(Passed(), "one\ntwo\n");
  EXPECT_EQ(Copy(), "one\ntwo\n");
}

TEST_F(OutputTeeTest, ASlowReaderSlowsTheWriterAndNotTheTee) {
  Start("head -c 1000000 /dev/zero >&2; echo done >&2");
  for (int i = 0; i < 200; ++i) {
    pollfd polled = tee_->Polled();
    poll(&polled, 1, 5);
    tee_->Pass();  // the test would hang where this waits for a reader
  }
  EXPECT_LT(Copy().size(), 300'000u);
  EXPECT_EQ(waitpid(child_, nullptr, WNOHANG), 0);
  std::string passed;
  while (passed.size() < 1'000'005) {
    pollfd polled = tee_->Polled();
    poll(&polled, 1, 5);
    tee_->Pass();
    passed += Passed();
  }
  EXPECT_EQ(AwaitEnd(), 0);
  EXPECT_EQ(passed.substr(1'000'000), "done\n");
  EXPECT_EQ(Copy(), passed);
}

TEST_F(OutputTeeTest, AWriterWithoutAReaderIsToldAsWithoutATee) {
  Start("while :; do echo more >&2; done");
  close(ends_[0]);
  for (int i = 0; i < 200 && waitpid(child_, nullptr, WNOHANG) == 0; ++i) {
    pollfd polled = tee_->Polled();
    poll(&polled, 1, 5);
    tee_->Pass();
  }
  EXPECT_EQ(kill(child_, 0), -1);  // it ended by SIGPIPE
  child_ = 0;
  ends_[0] = -1;
}

TEST_F(OutputTeeTest, PassesOnWhereNothingCanBeKept) {
  copy_ = "/nowhere/copy";
  Start("echo one >&2");
  EXPECT_EQ(AwaitEnd(), 0);
  tee_->PassAll(1000);
  EXPECT_EQ(Passed(), "one\n");
}

}  // namespace output_tee_test
}  // namespace trainwreck
