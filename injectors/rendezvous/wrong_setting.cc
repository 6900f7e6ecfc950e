// rendezvous.wrong_setting: an environment that was copied from another job: the ranks look for
// each other where nobody is, or for more ranks than there are.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "rendezvous.wrong_setting",
          .doc =
              "Gives a rank wrong settings of the rendezvous over TCP. The file of "
              "`parallel.rendezvous: file` is left as it is.",
          .params = {{.name = "what",
                      .type = ValueType::kString,
                      .default_value = "address",
                      .choices = {"address", "port", "world_size", "blocked_port"},
                      .unit = "",
                      .doc = "address: one that no machine has (192.0.2.1, RFC 5737); port: one "
                             "where nobody listens; world_size: one rank more than there are; "
                             "blocked_port: one where somebody listens and never answers"}},
          .min_ranks = 2,
          .evidence = "once: the setting before and after"};
}

class Socket {
 public:
  // Listens on a free port of the loopback interface and accepts nothing.
  Socket() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (fd_ < 0 || bind(fd_, generic, size) != 0 || listen(fd_, 8) != 0 ||
        getsockname(fd_, generic, &size) != 0) {
      throw std::runtime_error("rendezvous.wrong_setting: no port to listen on");
    }
    port_ = ntohs(address.sin_port);
  }
  ~Socket() { close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int port() const { return port_; }

 private:
  int fd_;
  int port_ = 0;
};

class WrongSetting : public Injector {
 public:
  using Injector::Injector;

  GroupOptions Wrap(GroupOptions options) override {
    if (!Acts()) return options;
    const std::string what = param("what");
    if (what == "world_size") {
      Change(what, options.world_size, options.world_size + 1);
    } else if (what == "address") {
      Change(what, options.address, std::string("192.0.2.1"));
    } else if (what == "port") {
      Change(what, options.port, Socket().port());  // free again at once
    } else {
      listener_ = std::make_unique<Socket>();
      Change(what, options.port, listener_->port());
    }
    return options;
  }

 private:
  template <typename Value>
  void Change(const std::string& what, Value& setting, Value other) {
    Fired({{"what", what}, {"before", setting}, {"after", other}});
    setting = std::move(other);
  }

  std::unique_ptr<Socket> listener_;
};

REGISTER_FAULT(Info, WrongSetting);

}  // namespace
}  // namespace trainwreck
