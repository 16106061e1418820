#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cluster/loglet/loglet_bench.h"
#include "cluster/loglet_nats/log_stream.h"
#include "cluster/loglet_nats/nats_loglet.h"
#include "stores/server.h"

/// Logs on real NATS servers.
namespace baton::loglets {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The first version of nats-server that carries logs.
inline constexpr coord::NatsVersion kNatsMin{2, 12, 15};

Instant steady_now();

/// A NATS server, or three of them. Null, with a skipped test, if there is no fit program here.
std::unique_ptr<stores::Server> start_nats(int members);
std::vector<std::string> addresses_of(stores::Server& server);
std::shared_ptr<coord::NatsLink> connect(stores::Server& server);

/// A name for a log that no other test of this program has.
loglet::LogName new_log_name();

/// One log on a server that exists, with a copy on each of its members.
class NatsBench final : public loglet::LogletBench {
 public:
  /// nullptr if the stream cannot be made; the test has failed then.
  static std::unique_ptr<NatsBench> make(stores::Server& server);

  std::unique_ptr<loglet::Loglet> client() override;
  void wait() override;
  Instant now() override { return steady_now(); }
  [[nodiscard]] const loglet::LogName& name() const { return name_; }

 private:
  NatsBench(stores::Server& server, loglet::LogName name)
      : server_(server), name_(std::move(name)) {}

  stores::Server& server_;
  loglet::LogName name_;
  // Clients may call it until they are destroyed.
  struct Bell {
    std::mutex mutex;
    std::condition_variable rung;
    bool rings = false;
  };
  std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
};

}  // namespace baton::loglets
