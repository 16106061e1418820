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
  std::string subject{};  // With {partition}.
  bool from_next = false;
  std::size_t fetch = 500;
  const std::atomic<bool>* paused = nullptr;
  /// May something be done for this partition, under this epoch, now?
  std::function<bool(std::uint32_t partition, std::uint64_t epoch)> may_act{};
  std::function<void(std::uint32_t partition, std::uint64_t epoch)> stopped{};
  std::function<void(bool warning, const std::string&)> log{};
};

/// A partition while it is ours: a thread that pulls its messages, and the consumer that remembers
/// how far we are.
///
/// The first thing an owner does is to look how far the consumers of those before it are. It makes
/// its own from there on, and then removes theirs: they cannot go on, and what was delivered to
/// them and not acknowledged comes to us at once. Killed in between, it leaves both, and the next
/// owner finds the mark all the same.
///
/// Deliveries are numbered. After a break of the connection, or when a number is missing, the
/// consumer is made anew from what is committed, and what had been passed on is skipped.
class NatsPartition {
 public:
  NatsPartition(const NatsPartitionContext& context, std::uint32_t partition, std::uint64_t epoch);
  /// As a crash would, unless it is over.
  ~NatsPartition();
  NatsPartition(const NatsPartition&) = delete;
  NatsPartition& operator=(const NatsPartition&) = delete;

  /// Ends it, and does not wait. `lost`: it belongs to another already.
  void revoke(bool lost);
  [[nodiscard]] bool is_over() const { return over_.load(); }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

  Status commit(std::int64_t next);
  /// Everything there is would be read below it, if nothing else were in the stream.
  [[nodiscard]] std::optional<std::int64_t> end() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// How to acknowledge everything up to a message.
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
  /// Takes the acknowledgements below `next` off the list, and answers the last; mutex_ is held.
  std::string take_ack(std::int64_t next);
  [[nodiscard]] bool is_leaving() const { return leaving_.load(); }
  void wait(std::chrono::milliseconds time);
  void complain(const std::string& what, const Error& error);

  const NatsPartitionContext context_;
  const std::uint32_t partition_;
  const std::uint64_t epoch_;
  const std::string filter_;

  // The thread's own.
  bool assigned_ = false;
  bool complained_ = false;
  std::int64_t next_ = 0;  // To be passed on.
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

  mutable std::mutex mutex_;  // Of what follows.
  std::condition_variable changed_;
  std::int64_t committed_ = 0;
  std::deque<Ack> acks_;    // Of what was passed on; not more than the pipeline holds.
  std::string last_reply_;  // What was acknowledged last, without waiting for it.
  std::optional<std::int64_t> end_;

  std::thread thread_;
};

}  // namespace baton::pipeline
