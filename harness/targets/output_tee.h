// What a process and its children write to a descriptor, passed on to where it went, and kept in a
// file as well. Nothing here waits: where the reader is slow, so are the writers, as without it.
#pragma once

#include <poll.h>

#include <string>

namespace trainwreck {

class OutputTee {
 public:
  // From now on what is written to `fd` (1 or 2) comes here; `copy` is appended to. Throws
  // std::runtime_error.
  OutputTee(int fd, const std::string& copy);
  ~OutputTee();
  OutputTee(const OutputTee&) = delete;
  OutputTee& operator=(const OutputTee&) = delete;

  // This process writes to where it did before; children that were started go on writing here.
  void Release();

  // What to poll before the next Pass.
  pollfd Polled() const;
  void Pass();
  // What has come until now; waits for its reader, at most so long.
  void PassAll(int milliseconds);

 private:
  bool Fetch();
  bool PassSome(int milliseconds);

  int fd_;
  int source_ = -1;   // of what is written; -1: nobody reads it any more
  int sink_ = -1;     // where it went before
  int copy_ = -1;     // -1: it could not be opened
  std::string text_;  // that has come, and was not passed on yet
};

}  // namespace trainwreck
