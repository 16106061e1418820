#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "worker/nats/kind.h"
#include "worker/nats/nats_bucket.h"
#include "worker/nats/nats_link.h"
#include "worker/nats/nats_watch.h"
#include "worker/stores/checked_store.h"
#include "worker/stores/limits.h"

namespace baton::coord {
namespace {

// Codes of JetStream. The second one: another write of the key is on its way through the replicas.
constexpr int kWrongLastSequence = 10'071;
constexpr int kWrongLastSequenceInFlight = 10'164;
constexpr int kNoMessage = 10'037;
constexpr int kSystemUnavailable = 10'008;

// Removals leave a trace, so that watches see them; where the server can, it forgets them after
// this.
constexpr std::chrono::hours kTombstoneTtl{1};

/// The last message of a key's subject.
struct LastMessage {
  std::string value{};
  KvRevision sequence = 0;
  bool is_tombstone = false;
  Duration age{};  // By two clocks: roughly.
};

class NatsStore final : public CheckedStore {
 public:
  NatsStore(std::string name, std::shared_ptr<NatsLink> link, NatsBucket bucket,
            const StoreOptions& options)
      : CheckedStore(std::move(name)),
        link_(std::move(link)),
        bucket_(std::move(bucket)),
        options_(options) {}

  [[nodiscard]] std::uint64_t requests() const override { return link_->requests(); }

 protected:
  Result<std::optional<StoredEntry>> do_get(const std::string& key,
                                            const Deadline& deadline) override {
    BATON_TRY(std::optional<LastMessage> last, read_last(key, deadline));
    if (!last || last->is_tombstone) return std::nullopt;
    return StoredEntry{.key = key, .value = std::move(last->value), .revision = last->sequence};
  }

  Result<CasOutcome> do_cas(const Write& write, const Deadline& deadline) override {
    const Message message{
        .key = write.key, .value = write.value, .ttl = write.ttl, .is_removal = false};
    BATON_TRY(const CasOutcome outcome, publish(message, write.expected, deadline));
    if (outcome.done || write.expected != 0) return outcome;
    // There is a last message; if it only says that the key is gone, the key may be made again, on
    // top of that very message.
    BATON_TRY(const std::optional<LastMessage> last, read_last(write.key, deadline));
    if (last && !last->is_tombstone) return outcome;
    return publish(message, last ? last->sequence : 0, deadline);
  }

  Result<CasOutcome> do_remove(const std::string& key, KvRevision expected,
                               const Deadline& deadline) override {
    const Message message{.key = key, .value = {}, .ttl = kTombstoneTtl, .is_removal = true};
    BATON_TRY(CasOutcome outcome, publish(message, expected, deadline));
    // The trace has a number of its own, which nobody may take for a revision.
    outcome.revision = 0;
    return outcome;
  }

  Result<std::vector<StoredEntry>> do_list(const std::string& prefix,
                                           const Deadline& deadline) override {
    // One read per key: everything that reads many at once may ask a replica that is behind.
    // Several at a time, or a large group could not be listed in time from far away.
    BATON_TRY(const std::vector<std::string> keys,
              list_nats_keys(*link_, bucket_, prefix, deadline));
    std::vector<Result<std::optional<LastMessage>>> found(keys.size());
    std::atomic<std::size_t> next = 0;
    const auto read_some = [&] {
      for (std::size_t i = next++; i < keys.size(); i = next++) {
        found[i] = read_last(keys[i], deadline);
      }
    };
    {
      std::vector<std::jthread> readers;
      for (std::size_t i = 1; i < std::min(keys.size(), limits::kReadersOfList); ++i) {
        readers.emplace_back(read_some);
      }
      read_some();
    }
    std::vector<StoredEntry> entries;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      BATON_TRY(std::optional<LastMessage> last, std::move(found[i]));
      if (!last) continue;
      if (last->is_tombstone) {
        BATON_TRY_STATUS(forget(keys[i], *last, deadline));
        continue;
      }
      entries.push_back(
          {.key = keys[i], .value = std::move(last->value), .revision = last->sequence});
    }
    return entries;
  }

  Result<std::unique_ptr<Watch>> do_watch(WatchOptions options, WatchCallback callback,
                                          const Deadline& deadline) override {
    return NatsWatch::start(link_, bucket_, std::move(options.prefix), std::move(callback),
                            deadline);
  }

 private:
  struct Message {
    std::string_view key;
    std::string_view value;
    std::optional<Duration> ttl;
    bool is_removal = false;
  };

  Result<NatsMessage> make_message(const Message& message, KvRevision expected) const {
    natsMsg* raw = nullptr;
    natsStatus status =
        natsMsg_Create(&raw, bucket_.subject_of(message.key).c_str(), nullptr, message.value.data(),
                       static_cast<int>(message.value.size()));
    NatsMessage made(raw);
    const auto set = [&](const char* name, const std::string& value) {
      if (status == NATS_OK) status = natsMsgHeader_Set(raw, name, value.c_str());
    };
    set("Nats-Expected-Last-Subject-Sequence", fmt::format("{}", expected));
    if (message.is_removal) set("KV-Operation", "DEL");
    if (message.ttl && bucket_.forgets_by_ttl) {
      set("Nats-TTL",
          fmt::format("{}s", std::chrono::ceil<std::chrono::seconds>(*message.ttl).count()));
    }
    if (status != NATS_OK) return nats_error(nats_outcome(status), "write");
    return made;
  }

  /// Not sent twice unless nobody was there to receive it: a second try could be refused because of
  /// the first.
  Result<CasOutcome> publish(const Message& message, KvRevision expected,
                             const Deadline& deadline) {
    BATON_TRY(const NatsMessage made, make_message(message, expected));
    while (true) {
      BATON_TRY_STATUS(link_->wait_until_connected(deadline));
      jsPubOptions options;
      jsPubOptions_Init(&options);
      options.MaxWait = deadline.left().count() + 1;
      jsPubAck* raw = nullptr;
      jsErrCode code{};
      link_->count_request();
      const natsStatus status =
          js_PublishMsg(&raw, link_->jetstream(), made.get(), &options, &code);
      const NatsPubAck ack(raw);
      if (status == NATS_OK) return CasOutcome{.done = true, .revision = ack->Sequence};
      const NatsOutcome outcome = nats_outcome(status, static_cast<int>(code));
      if (outcome.code == kWrongLastSequence || outcome.code == kWrongLastSequenceInFlight) {
        return CasOutcome{};
      }
      if (!outcome.found_nobody() || deadline.has_passed()) return nats_error(outcome, "write");
      std::this_thread::sleep_for(limits::kRetryPause);
    }
  }

  /// Takes the trace of a removal away, and nothing that may have come after it. Else listings
  /// would grow with every key that ever was: before 2.11 no server does it by itself.
  Status forget(const std::string& key, const LastMessage& trace, const Deadline& deadline) {
    if (options_.to_read || trace.age < options_.traces_kept) return {};
    const nlohmann::json body{{"filter", bucket_.subject_of(key)}, {"seq", trace.sequence + 1}};
    const auto answer = link_->api("$JS.API.STREAM.PURGE." + bucket_.stream, body.dump(), deadline);
    if (!answer) return answer.error();
    return {};  // Whatever it says: if it is no, the trace stays.
  }

  /// By js_GetLastMsg, which only the leader answers; kvStore_Get may ask any replica.
  Result<std::optional<LastMessage>> read_last(const std::string& key, const Deadline& deadline) {
    const std::string subject = bucket_.subject_of(key);
    while (true) {
      BATON_TRY_STATUS(link_->wait_until_connected(deadline));
      jsOptions options;
      jsOptions_Init(&options);
      options.Wait = deadline.left().count() + 1;
      natsMsg* raw = nullptr;
      jsErrCode code{};
      link_->count_request();
      const natsStatus status = js_GetLastMsg(&raw, link_->jetstream(), bucket_.stream.c_str(),
                                              subject.c_str(), &options, &code);
      const NatsMessage message(raw);
      if (status == NATS_OK) return last_of(raw);
      const NatsOutcome outcome = nats_outcome(status, static_cast<int>(code));
      if (outcome.code == kNoMessage) return std::nullopt;
      const bool is_temporary = outcome.found_nobody() || outcome.code == kSystemUnavailable ||
                                status == NATS_CONNECTION_DISCONNECTED;
      if (!is_temporary || deadline.has_passed()) return nats_error(outcome, "read");
      std::this_thread::sleep_for(limits::kRetryPause);
    }
  }

  static LastMessage last_of(natsMsg* message) {
    LastMessage last{.sequence = natsMsg_GetSequence(message),
                     .is_tombstone = is_nats_tombstone(message),
                     .age = std::chrono::system_clock::now().time_since_epoch() -
                            std::chrono::nanoseconds(natsMsg_GetTime(message))};
    const int size = natsMsg_GetDataLength(message);
    if (size > 0) last.value.assign(natsMsg_GetData(message), static_cast<std::size_t>(size));
    return last;
  }

  std::shared_ptr<NatsLink> link_;
  NatsBucket bucket_;
  const StoreOptions options_;
};

Result<std::unique_ptr<KvStore>> open(const StoreUrl& url, const StoreOptions& options,
                                      const Deadline& deadline) {
  BATON_TRY(std::shared_ptr<NatsLink> link,
            NatsLink::connect(url.endpoints, deadline, options.security));
  BATON_TRY(NatsBucket bucket, open_nats_bucket(*link, url, options, deadline));
  return std::make_unique<NatsStore>(to_string(url), std::move(link), std::move(bucket), options);
}

}  // namespace

const StoreAdapter kNatsAdapter{.open = open};

}  // namespace baton::coord
