#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <baton/connection.h>
#include <baton/lease_stream.h>
#include <baton/broker.h>

#include "pipeline/engine/source.h"

namespace baton::pipeline {

struct QueueSourceOptions {
  client::ConnectionOptions connection{};
  std::string queue{};
  // Leased and not yet ended, at most. They are the source's own bound, beside the window.
  std::size_t prefetch = 1000;
  std::size_t prefetch_bytes = std::size_t{64} << 20U;
  std::function<void(bool warning, const std::string&)> log{};
};

/// A Baton queue, as one partition without an order: each message is leased, and acknowledged once
/// its record has come to its end. However long that takes, its lease is extended.
///
/// A record's offset is its message's id as a number: the last 62 bits of it, which are random. In
/// hexadecimal they are the id's last 16 digits (the first of them without its two upper bits).
///
/// A lease that is lost is normal life, for example when the broker was away for long: the message
/// comes again, and takes the place of the first if that is still in the pipeline; otherwise the
/// sink finds it as a replay.
class QueueSource : public Source {
 public:
  explicit QueueSource(QueueSourceOptions options);
  QueueSource(const QueueSource&) = delete;
  QueueSource& operator=(const QueueSource&) = delete;
  ~QueueSource() override;

  Status start(SourceListener& listener) override;
  Status commit(std::uint32_t /*partition*/, std::uint64_t /*epoch*/,
                std::int64_t /*next*/) override {
    return {};
  }
  void pause() override;
  void resume() override;
  void ended(std::span<const Item> items) override;
  [[nodiscard]] bool is_ordered() const override { return false; }
  Result<Findings> check() override;
  Status stop(std::chrono::milliseconds timeout) override;
  /// So many messages more than have ended: the lag is the depth of the queue, as last seen.
  [[nodiscard]] std::optional<std::string> trouble() const override;
  [[nodiscard]] std::vector<PartitionLag> ends() const override;
  [[nodiscard]] std::string name() const override;

 private:
  using Clock = std::chrono::steady_clock;

  /// A message whose record has not come to its end.
  struct Held {
    std::string id{};
    client::LeaseToken token{};
    Clock::time_point granted{};  // Or extended.
    bool extending = false;       // Asked, and not answered yet.
    bool lost = false;            // The lease; the record is still in the pipeline.
  };
  using Tokens = std::vector<client::LeaseToken>;
  using Extended = std::vector<std::pair<std::int64_t, client::LeaseToken>>;

  client::LeaseStreamOptions stream_options();
  void log(bool warning, const std::string& text) const;

  // The keeper's: takes messages off the stream and extends leases, and must never wait for room.
  void keep(const std::stop_token& stop);
  void take(std::vector<client::LeasedMessage> messages);
  /// False: it is to be released.
  bool hold(client::LeasedMessage& message);
  void extend_due();
  void extension_answered(const Extended& asked, const client::ItemResults& results);
  void look_at_queue();

  // The deliverer's.
  void deliver(const std::stop_token& stop);
  bool wait_for_assignment(const std::stop_token& stop);

  void ask_for_more();
  void release(Tokens tokens);
  /// Of what no record was delivered for yet.
  Tokens forget_waiting();
  void use_up_credit();
  Status close(Clock::time_point deadline);

  QueueSourceOptions options_;
  SourceListener* listener_ = nullptr;
  std::atomic<std::chrono::milliseconds> visibility_{};
  std::atomic<bool> connected_{false};
  mutable std::mutex trouble_mutex_;
  std::string trouble_;                   // While it is not connected.
  std::atomic<bool> reconnected_{false};  // Since the keeper looked.

  mutable std::mutex mutex_;  // Of what follows.
  std::condition_variable changed_;
  std::unordered_map<std::int64_t, Held> held_;
  std::vector<Record> waiting_;  // To be delivered.
  std::size_t credit_ = 0;       // Given to the broker, and not used yet.
  std::size_t settling_ = 0;     // Calls of ended() under way.
  std::size_t lost_ = 0;         // Leases, since it was said last.
  std::int64_t ended_ = 0;       // Records.
  std::int64_t end_ = -1;        // -1: not known yet.
  bool paused_ = false;
  bool stopping_ = false;
  bool assigned_ = false;

  Clock::time_point looked_at_{};  // The keeper's own.
  std::optional<client::Broker> client_;
  // After all that its callbacks touch.
  std::optional<client::LeaseStream> stream_;
  std::jthread keeper_;
  std::jthread deliverer_;
};

}  // namespace baton::pipeline
