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

#include <baton/broker.h>
#include <baton/connection.h>
#include <baton/lease_stream.h>

#include "pipeline/engine/source.h"

namespace baton::pipeline {

struct QueueSourceOptions {
  client::ConnectionOptions connection{};
  std::string queue{};
  // The most messages that are leased and not finished. A bound of this source, beside the window.
  std::size_t prefetch = 1000;
  std::size_t prefetch_bytes = std::size_t{64} << 20U;
  std::function<void(bool warning, const std::string&)> log{};
};

/// A Baton queue, as one partition without an order: each message is leased, and acked once its
/// record is finished. Until then its lease is extended.
///
/// A record's offset is the last 62 bits of its message's id, which are random. In hexadecimal they
/// are the id's last 16 digits (the first of them without its two upper bits).
///
/// A lost lease is normal, for example after a long outage of the broker: the message is delivered
/// again, and replaces the first delivery if that is still in the pipeline; otherwise the sink
/// recognises it as a replay.
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
  /// The lag is the depth of the queue when it was last read.
  [[nodiscard]] std::optional<std::string> trouble() const override;
  [[nodiscard]] std::vector<PartitionLag> ends() const override;
  [[nodiscard]] std::string name() const override;

 private:
  using Clock = std::chrono::steady_clock;

  /// A message whose record is not finished.
  struct Held {
    std::string id{};
    client::LeaseToken token{};
    Clock::time_point granted{};  // Or last extended.
    bool extending = false;       // An extension was asked for, and not answered yet.
    bool lost = false;            // The lease is lost; the record is still in the pipeline.
  };
  using Tokens = std::vector<client::LeaseToken>;
  using Extended = std::vector<std::pair<std::int64_t, client::LeaseToken>>;

  client::LeaseStreamOptions stream_options();
  void log(bool warning, const std::string& text) const;

  // The keeper's thread: takes messages off the stream and extends leases, and must never wait for
  // room.
  void keep(const std::stop_token& stop);
  void take(std::vector<client::LeasedMessage> messages);
  /// False: the message must be released.
  bool hold(client::LeasedMessage& message);
  void extend_due();
  void extension_answered(const Extended& asked, const client::ItemResults& results);
  void look_at_queue();

  // The deliverer's thread.
  void deliver(const std::stop_token& stop);
  bool wait_for_assignment(const std::stop_token& stop);

  void ask_for_more();
  void release(Tokens tokens);
  /// Forgets messages whose records were not delivered yet, and returns their tokens.
  Tokens forget_waiting();
  void use_up_credit();
  Status close(Clock::time_point deadline);

  QueueSourceOptions options_;
  SourceListener* listener_ = nullptr;
  std::atomic<std::chrono::milliseconds> visibility_{};
  std::atomic<bool> connected_{false};
  mutable std::mutex trouble_mutex_;
  std::string trouble_;                   // Set while not connected.
  std::atomic<bool> reconnected_{false};  // Since the keeper's last check.

  mutable std::mutex mutex_;  // Guards the members below.
  std::condition_variable changed_;
  std::unordered_map<std::int64_t, Held> held_;
  std::vector<Record> waiting_;  // Records to be delivered.
  std::size_t credit_ = 0;       // Given to the broker, and not used yet.
  std::size_t settling_ = 0;     // Calls of ended() in progress.
  std::size_t lost_ = 0;         // Lost leases since the last log line.
  std::int64_t ended_ = 0;       // Finished records.
  std::int64_t end_ = -1;        // -1: not known yet.
  bool paused_ = false;
  bool stopping_ = false;
  bool assigned_ = false;

  Clock::time_point looked_at_{};  // Only for the keeper.
  std::unique_ptr<client::Broker> client_;
  // Declared after everything that its callbacks use.
  std::unique_ptr<client::LeaseStream> stream_;
  std::jthread keeper_;
  std::jthread deliverer_;
};

}  // namespace baton::pipeline
