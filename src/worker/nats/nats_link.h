#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <baton/security.h>
#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "worker/nats/nats_handles.h"
#include "worker/stores/deadline.h"

namespace baton::coord {

/// What a call of libnats ended with. An answer of the server's comes with its JetStream code.
struct NatsOutcome {
  natsStatus status = NATS_OK;
  int code = 0;
  std::string text{};

  [[nodiscard]] bool ok() const { return status == NATS_OK; }
  /// Nobody was there to take the request, so that it may be sent again whatever it asks for.
  [[nodiscard]] bool found_nobody() const { return status == NATS_NO_RESPONDERS; }
};

/// The outcome of a call that this thread has just made.
NatsOutcome nats_outcome(natsStatus status, int code = 0);
/// As an Error; `doing` begins its text.
Error nats_error(const NatsOutcome& outcome, std::string_view doing);

/// Sets TLS and the login, for connections that are made elsewhere.
natsStatus set_nats_security(natsOptions* options, const client::SecurityOptions& security);

/// One connection to a NATS server or a cluster. It comes back by itself, to whichever member
/// answers; where libnats gives up for good, as after an answer that it may not connect, it is made
/// anew. Shared by a store and its watches; thread-safe.
class NatsLink {
 public:
  /// Fails at once when no server listens, and with the deadline when none answers. With
  /// invalid_argument when TLS or the login is not what the server wants.
  static Result<std::shared_ptr<NatsLink>> connect(const std::vector<std::string>& addresses,
                                                   const Deadline& deadline,
                                                   const client::SecurityOptions& security = {});
  NatsLink(const NatsLink&) = delete;
  NatsLink& operator=(const NatsLink&) = delete;
  ~NatsLink();

  /// Good as long as the link, though not to be kept: another one may have taken its place.
  natsConnection* connection() { return connection_.load(std::memory_order_acquire); }
  jsCtx* jetstream() { return jetstream_.load(std::memory_order_acquire); }

  /// Nothing is sent before it holds: libnats would keep it, and send it after its caller has
  /// given up.
  Status wait_until_connected(const Deadline& deadline);
  /// Sends a request of the JetStream API and answers the body of its reply, which may be an error
  /// in JSON. Asks again while there is nobody to answer.
  Result<nlohmann::json> api(const std::string& subject, const std::string& body,
                             const Deadline& deadline);
  /// "host:port" of every server of the cluster that the connected one knows, itself first.
  std::vector<std::string> servers();

  void count_request() { requests_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t requests() const { return requests_.load(std::memory_order_relaxed); }

  /// Ends the subscription, and destroys it once that is safe: libnats' reading thread may be busy
  /// with a message for it, and up to version 3.5 takes no reference meanwhile.
  void retire(natsSubscription* subscription);
  /// From here on a broken connection ends the subscription, so that its reader wakes up.
  void end_when_broken(natsSubscription* subscription);
  /// It is about to be destroyed.
  void forget(natsSubscription* subscription);

 private:
  /// What libnats' own threads touch. It may outlive the link: they call back until the very end.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::set<natsSubscription*> subscriptions;
  };
  static void on_disconnected(natsConnection* connection, void* closure);
  static void on_reconnected(natsConnection* connection, void* closure);
  static void on_closed(natsConnection* connection, void* closure);

  NatsLink(const std::vector<std::string>& addresses, client::SecurityOptions security)
      : addresses_(addresses), security_(std::move(security)) {}
  Status open(const Deadline& deadline);
  /// If libnats has closed it.
  Status reopen(const Deadline& deadline);
  Error no_jetstream();
  [[nodiscard]] Result<NatsOptions> make_options(const Deadline& deadline, void* closure) const;
  [[nodiscard]] Error refusal(natsStatus status) const;

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  const std::vector<std::string> addresses_;
  const client::SecurityOptions security_;
  std::mutex open_mutex_;
  // The last one is in use; others may still be using those that were.
  std::vector<NatsConnection> connections_;
  std::vector<NatsJetStream> jetstreams_;
  std::atomic<natsConnection*> connection_ = nullptr;
  std::atomic<jsCtx*> jetstream_ = nullptr;
  std::mutex retired_mutex_;
  std::vector<natsSubscription*> retired_;
  std::atomic<std::uint64_t> requests_ = 0;
};

struct NatsRetire {
  std::shared_ptr<NatsLink> link{};
  void operator()(natsSubscription* subscription) const { link->retire(subscription); }
};
using NatsSubscription = std::unique_ptr<natsSubscription, NatsRetire>;

/// A subscription that is polled; at most this many messages and bytes may wait; -1: any number.
Result<NatsSubscription> nats_subscribe(const std::shared_ptr<NatsLink>& link,
                                        const std::string& subject, int messages_max = -1,
                                        int bytes_max = -1);

}  // namespace baton::coord
