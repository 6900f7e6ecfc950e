#include "harness/cli/clean_output.h"

#include <streambuf>
#include <string>

#include "harness/text/clean_text.h"

namespace trainwreck {

// Line by line, so that no character is cut.
class CleanOutput::Buffer : public std::streambuf {
 public:
  explicit Buffer(std::streambuf* to) : to_(to) {}

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    line_ += traits_type::to_char_type(c);
    return line_.back() != '\n' || PassOn() ? c : traits_type::eof();
  }
  int sync() override { return PassOn() && to_->pubsync() == 0 ? 0 : -1; }

 private:
  bool PassOn() {
    const std::string clean = CleanText(line_);
    line_.clear();
    const auto size = static_cast<std::streamsize>(clean.size());
    return to_->sputn(clean.data(), size) == size;
  }

  std::streambuf* to_;
  std::string line_;
};

CleanOutput::CleanOutput(std::ostream& out)
    : out_(out),
      buffer_(std::make_unique<Buffer>(out.rdbuf())),
      before_(out.rdbuf(buffer_.get())) {}

CleanOutput::~CleanOutput() {
  out_.flush();
  out_.rdbuf(before_);
}

}  // namespace trainwreck
