#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/engine/source.h"
#include "pipeline/nats/nats_pull.h"
#include "pipeline/nats/nats_stream.h"

namespace baton::pipeline {

/// What the partitions of a source share.
struct NatsPartitionContext {
  std::shared_ptr<NatsStream> stream{};
  SourceListener* listener = nullptr;
  std::string group{};
  std::string subject{};  // Contains {partition}.
  bool from_next = false;
  std::size_t fetch = 500;
  const std::atomic<bool>* paused = nullptr;
  /// Whether this process may act for this partition, under this epoch, now.
  std::function<bool(std::uint32_t partition, std::uint64_t epoch)> may_act{};
  std::function<void(std::uint32_t partition, std::uint64_t epoch)> stopped{};
  std::function<void(bool warning, const std::string&)> log{};
};

/// A partition while it is assigned to this process: a thread that pulls its messages, and the
/// JetStream consumer that stores the position.
///
/// An owner first looks up the positions of earlier owners' consumers. It creates its own consumer
/// from there on, and then removes theirs: earlier owners cannot continue, and messages that were
/// delivered to them and not acknowledged are delivered here at once. If it is killed in between,
/// both consumers stay, and the next owner still finds the position.
///
/// Deliveries are numbered. After a reconnect, or if a number is missing, the consumer is created
/// again from the committed position, and messages that were already passed on are skipped.
class NatsPartition {
 public:
  NatsPartition(const NatsPartitionContext& context, std::uint32_t partition, std::uint64_t epoch);
  /// Ends as a crash would, unless the partition has already ended.
  ~NatsPartition();
  NatsPartition(const NatsPartition&) = delete;
  NatsPartition& operator=(const NatsPartition&) = delete;

  /// Ends the partition without waiting. `lost`: it already belongs to another process.
  void revoke(bool lost);
  [[nodiscard]] bool is_over() const { return over_.load(); }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

  Status commit(std::int64_t next);
  /// The offset after the last message, if no other messages were in the stream.
  [[nodiscard]] std::optional<std::int64_t> end() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// The reply subject that acknowledges everything up to a message.
  struct Ack {
    std::int64_t sequence = 0;
    std::string reply_subject{};
  };

  void run();
  bool begin();
  Result<std::int64_t> find_begin();
  void step();
  Status open_consumer();
  Status remove_older(const std::vector<std::string>& names, const NatsConsumerName& mine);
  void deliver(std::vector<NatsPulled> pulled);
  Record to_record(NatsPulled& pulled) const;
  void look_at_lag();
  void finish();
  void commit_last(std::int64_t next);
  /// Removes the acknowledgements below `next` from the list, and returns the last; mutex_ is held.
  std::string take_ack(std::int64_t next);
  [[nodiscard]] bool is_leaving() const { return leaving_.load(); }
  void wait(std::chrono::milliseconds time);
  void complain(const std::string& what, const Error& error);

  const NatsPartitionContext context_;
  const std::uint32_t partition_;
  const std::uint64_t epoch_;
  const std::string filter_;

  // Only for the thread.
  bool assigned_ = false;
  bool complained_ = false;
  std::int64_t next_ = 0;  // The next offset to pass on.
  std::uint64_t generation_ = 0;
  std::uint64_t breaks_ = 0;
  std::string consumer_;
  std::unique_ptr<NatsPull> pull_;
  Clock::time_point looked_at_{};

  std::atomic<bool> leaving_{false};
  std::atomic<bool> lost_{false};
  std::atomic<bool> crashed_{false};
  std::atomic<bool> over_{false};
  std::atomic<bool> is_broken_{false};  // An acknowledgement could not be sent.
  bool told_of_gap_ = false;

  mutable std::mutex mutex_;  // Guards the members below.
  std::condition_variable changed_;
  std::int64_t committed_ = 0;
  // For messages that were passed on; at most as many as the pipeline holds.
  std::deque<Ack> acks_;
  std::string last_reply_;  // The last acknowledgement that was sent without waiting.
  std::optional<std::int64_t> end_;

  std::thread thread_;
};

}  // namespace baton::pipeline
