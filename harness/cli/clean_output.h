// Text for people on its way to a stream: control characters that came with names, titles or
// descriptions are shown, not obeyed (CleanText). For all verbs that print no colours of their own.
//
//   const CleanOutput clean(std::cout);  // until the end of the scope
#pragma once

#include <memory>
#include <ostream>

namespace trainwreck {

class CleanOutput {
 public:
  explicit CleanOutput(std::ostream& out);
  ~CleanOutput();
  CleanOutput(const CleanOutput&) = delete;
  CleanOutput& operator=(const CleanOutput&) = delete;

 private:
  class Buffer;
  std::ostream& out_;
  std::unique_ptr<Buffer> buffer_;
  std::streambuf* before_;
};

}  // namespace trainwreck
