#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "worker/nats/nats_bucket.h"
#include "worker/nats/nats_link.h"
#include "worker/stores/deadline.h"
#include "worker/stores/kv_store.h"

namespace baton::coord {

/// Where a delivered message stands, as the subject of its acknowledgement says it.
struct NatsDelivery {
  std::uint64_t stream_sequence = 0;
  std::uint64_t consumer_sequence = 0;
};

/// Reads "$JS.ACK.<stream>.<consumer>.<tries>.<stream seq>.<consumer seq>.<time>.<pending>", also
/// with a domain and an account in front of the stream.
std::optional<NatsDelivery> parse_nats_delivery(std::string_view reply);

/// Whether the message says that its key is gone: removed, purged, or out of its time.
bool is_nats_tombstone(natsMsg* message);

/// An ephemeral push consumer of our own, instead of libnats' ordered one: that one repairs itself
/// in silence, and can stay blind for 20 s after a server's crash. This one counts what it gets,
/// hears a heartbeat every second, and ends as `broken` at the first gap or after three seconds of
/// silence.
///
/// Owns a thread, which makes the calls.
class NatsWatch final : public Watch {
 public:
  static Result<std::unique_ptr<Watch>> start(std::shared_ptr<NatsLink> link,
                                              const NatsBucket& bucket, std::string prefix,
                                              WatchCallback callback, const Deadline& deadline);
  NatsWatch(const NatsWatch&) = delete;
  NatsWatch& operator=(const NatsWatch&) = delete;
  ~NatsWatch() override;

 private:
  NatsWatch(std::shared_ptr<NatsLink> link, const NatsBucket& bucket, std::string prefix,
            WatchCallback callback);

  Status subscribe(const Deadline& deadline);
  void run();
  /// Each answers why the watch is over; empty: it goes on.
  std::string take(natsMsg* message);
  std::string take_status(natsMsg* message, std::string_view status);
  void show(natsMsg* message, std::uint64_t revision);
  void show_in_snapshot(WatchEvent event);
  void end_snapshot();

  std::shared_ptr<NatsLink> link_;
  NatsBucket bucket_;
  std::string prefix_;
  WatchCallback callback_;
  NatsSubscription subscription_;
  std::atomic<bool> stopping_ = false;
  bool snapshot_ended_ = false;
  // Until then: keys that the leader knew when the watch began and that have not come yet, since
  // the replica that feeds us may be behind it; and keys that have been shown.
  std::set<std::string> awaited_;
  std::set<std::string> shown_;
  std::uint64_t consumer_sequence_ = 0;  // Of the last message.
  std::thread thread_;
};

}  // namespace baton::coord
