// Tells of files as a program writes them, below one folder (inotify).
//
//   WriteWatch watch(folder);
//   pollfd polled{watch.fd(), POLLIN, 0};  // readable: something was written
//   const WritesSeen seen = watch.Read();
#pragma once

#include <map>
#include <string>

namespace trainwreck {

// Since the call before.
struct WritesSeen {
  std::string open;   // a file that was begun or changed, and not closed since; empty: none
  std::string moved;  // a file that was moved here, or has a new name; empty: none
  int finished = 0;   // how many files were closed after writing, or moved
};

class WriteWatch {
 public:
  // The folder need not have anything in it. Folders that are made below it are watched, too.
  explicit WriteWatch(const std::string& folder);
  ~WriteWatch();
  WriteWatch(const WriteWatch&) = delete;
  WriteWatch& operator=(const WriteWatch&) = delete;

  int fd() const { return fd_; }
  WritesSeen Read();

 private:
  void Add(const std::string& folder);

  int fd_;
  std::map<int, std::string> folders_;  // by watch
};

}  // namespace trainwreck
