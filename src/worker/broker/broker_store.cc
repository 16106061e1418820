#include <algorithm>
#include <atomic>
#include <thread>
#include <type_traits>
#include <utility>

#include <baton/broker.h>

#include "base/result.h"
#include "sdk/base/channel.h"
#include "sdk/base/errors.h"
#include "worker/broker/kind.h"
#include "worker/stores/checked_store.h"
#include "worker/stores/limits.h"

namespace baton::coord {
namespace {

using std::chrono::milliseconds;

// How soon the SDK tries again to reach a broker that is away: a lease is only seconds long.
constexpr milliseconds kReconnectMin{50};
constexpr milliseconds kReconnectMax{500};
// A broker that vanished without closing its connections.
constexpr milliseconds kKeepaliveInterval{2'000};
constexpr milliseconds kKeepaliveTimeout{1'000};

StoredEntry to_stored(client::KvEntry entry) {
  return {.key = std::move(entry.key), .value = std::move(entry.value), .revision = entry.revision};
}

milliseconds left(const Deadline& deadline) {
  return std::max(deadline.left(), milliseconds{1});  // 0 would mean: as long as it takes.
}

/// Passes the SDK's events on. Its watch ends at the first broken connection, and here also where
/// it would start over with a new snapshot: what went away in between would never be shown.
class Translator {
 public:
  explicit Translator(WatchCallback callback) : callback_(std::move(callback)) {}

  void take(const client::KvWatchEvent& event) {
    using Kind = client::KvWatchEvent::Kind;
    if (is_over_) return;
    switch (event.kind) {
      case Kind::put: return pass(WatchEvent::Kind::put, to_stored(event.entry));
      case Kind::removed:
      case Kind::expired:
        return pass(WatchEvent::Kind::removed,
                    {.key = event.entry.key, .revision = event.entry.revision});
      case Kind::snapshot_end: return pass(WatchEvent::Kind::snapshot_end, {});
      case Kind::session_lost:
        return pass(WatchEvent::Kind::session_lost,
                    {.key = event.entry.key, .revision = event.entry.revision});
      case Kind::compacted: return end("it fell behind the changes that the broker remembers");
      case Kind::disconnected:
      case Kind::ended: return end(event.error.text);
    }
  }

 private:
  void pass(WatchEvent::Kind kind, StoredEntry entry) {
    callback_({.kind = kind, .entry = std::move(entry)});
  }
  void end(std::string why) {
    is_over_ = true;
    pass(WatchEvent::Kind::broken, {.value = std::move(why)});
  }

  WatchCallback callback_;
  bool is_over_ = false;
};

class BrokerWatch final : public Watch {
 public:
  explicit BrokerWatch(client::KvWatch watch) : watch_(std::move(watch)) {}

 private:
  client::KvWatch watch_;
};

class BrokerStore final : public CheckedStore {
 public:
  BrokerStore(std::string name, client::Broker broker, client::Bucket bucket)
      : CheckedStore(std::move(name)), broker_(std::move(broker)), bucket_(std::move(bucket)) {}

  /// Fails at once when the broker cannot be reached.
  Status make_bucket(const Deadline& deadline) {
    ++requests_;
    const auto made = bucket_.create({}, {.deadline = left(deadline)});
    // Somebody made it with settings of his own: fine.
    if (made || made.error().code == Errc::bucket_exists) return {};
    return made.error();
  }

  Status find_bucket(const Deadline& deadline) {
    ++requests_;
    const auto found = bucket_.describe({.deadline = left(deadline)});
    if (found) return {};
    if (found.error().code == Errc::bucket_not_found) return no_bucket(bucket_.name());
    return found.error();
  }

  [[nodiscard]] std::uint64_t requests() const override { return requests_; }

 protected:
  Result<std::optional<StoredEntry>> do_get(const std::string& key,
                                            const Deadline& deadline) override {
    BATON_TRY(auto found,
              read(deadline, [&] { return bucket_.get(key, {.deadline = left(deadline)}); }));
    if (!found) return std::nullopt;
    return to_stored(*std::move(found));
  }

  Result<CasOutcome> do_cas(const Write& write, const Deadline& deadline) override {
    BATON_TRY_STATUS(start(deadline));
    client::PutOptions options{.deadline = left(deadline)};
    if (write.ttl) options.ttl = std::chrono::ceil<milliseconds>(*write.ttl);
    const auto done = bucket_.cas(write.key, write.expected, write.value, options);
    if (!done) return done.error();
    return CasOutcome{.done = done->done, .revision = done->done ? done->revision : 0};
  }

  Result<CasOutcome> do_remove(const std::string& key, KvRevision expected,
                               const Deadline& deadline) override {
    BATON_TRY_STATUS(start(deadline));
    const auto done =
        bucket_.remove(key, {.expected_revision = expected, .deadline = left(deadline)});
    if (!done) return done.error();
    return CasOutcome{.done = done->done && !done->unchanged};
  }

  Result<std::vector<StoredEntry>> do_list(const std::string& prefix,
                                           const Deadline& deadline) override {
    std::vector<StoredEntry> entries;
    client::ListKeysOptions options{.prefix = prefix};
    do {
      BATON_TRY(client::KvPage page, read(
                                         deadline,
                                         [&] {
                                           options.deadline = left(deadline);
                                           return bucket_.list(options);
                                         }));
      for (client::KvEntry& entry : page.entries) entries.push_back(to_stored(std::move(entry)));
      options.after = std::move(page.next);
    } while (!options.after.empty());
    return entries;
  }

  Result<std::unique_ptr<Watch>> do_watch(WatchOptions options, WatchCallback callback,
                                          const Deadline& deadline) override {
    BATON_TRY_STATUS(start(deadline));
    auto translator = std::make_shared<Translator>(std::move(callback));
    auto watch =
        bucket_.watch({.prefix = std::move(options.prefix),
                       .session = std::move(options.session),
                       .reconnect = false},
                      [translator](const client::KvWatchEvent& event) { translator->take(event); });
    if (!watch) return watch.error();
    const auto started = watch->wait_until_started(left(deadline));
    if (!started) return started.error();
    return std::make_unique<BrokerWatch>(*std::move(watch));
  }

 private:
  /// Counts a request. A broker that is away may come back in time: the SDK alone would not wait.
  Status start(const Deadline& deadline) {
    ++requests_;
    const auto ready = broker_.wait_until_ready(left(deadline));
    if (ready) return {};
    return Error{Errc::unavailable, ready.error().text};
  }

  /// A call that changes nothing: made again until the deadline, on a new connection if the old one
  /// turns out to be broken.
  template <class Call, class Answer = std::invoke_result_t<Call>::value_type>
  Result<Answer> read(const Deadline& deadline, Call call) {
    while (true) {
      BATON_TRY_STATUS(start(deadline));
      auto answer = call();
      if (answer) return *std::move(answer);
      if (answer.error().code != Errc::unavailable || deadline.has_passed()) {
        return answer.error();
      }
      std::this_thread::sleep_for(std::min(deadline.left(), limits::kRetryPause));
    }
  }

  client::Broker broker_;
  client::Bucket bucket_;
  std::atomic<std::uint64_t> requests_ = 0;
};

Result<std::unique_ptr<KvStore>> open(const StoreUrl& url, const StoreOptions& options,
                                      const Deadline& deadline) {
  client::ConnectionOptions connection;
  connection.address = url.endpoints.front();
  connection.tls = options.security.tls;
  connection.reconnect_min = kReconnectMin;
  connection.reconnect_max = kReconnectMax;
  connection.keepalive_interval = kKeepaliveInterval;
  connection.keepalive_timeout = kKeepaliveTimeout;
  BATON_TRY(const client::Broker broker, client::Broker::open(connection));
  auto store = std::make_unique<BrokerStore>(to_string(url), broker, broker.bucket(url.bucket));
  const Status there =
      options.to_read ? store->find_bucket(deadline) : store->make_bucket(deadline);
  if (there) return store;
  return client::explain(connection, there.error());
}

Status check_login(const client::SecurityOptions& /*security*/) {
  return Error{Errc::invalid_argument,
               "a Baton broker has no logins: it knows clients by their certificates"};
}

}  // namespace

const StoreAdapter kBrokerAdapter{.check_login = check_login, .open = open};

}  // namespace baton::coord
