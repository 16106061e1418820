#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <baton/consumer.h>

#include "sdk/queue/lease_link.h"

namespace baton::client {

/// What runs a Consumer: one feeder thread, which takes batches from the stream, extends leases and
/// tells the broker what has been begun, and `concurrency` workers, which run the handler.
/// Thread-safe; joins all of them in close().
///
/// Invariant: each message taken from the stream is finished exactly once, which returns its
/// credit: acked, nacked, released, or found lost.
class ConsumerRuntime {
 public:
  ConsumerRuntime(const Connection& connection, std::string queue, ConsumerOptions options,
                  Consumer::Handler handler);
  ~ConsumerRuntime();
  ConsumerRuntime(const ConsumerRuntime&) = delete;
  ConsumerRuntime& operator=(const ConsumerRuntime&) = delete;
  ConsumerRuntime(ConsumerRuntime&&) = delete;
  ConsumerRuntime& operator=(ConsumerRuntime&&) = delete;

  Status close(std::chrono::milliseconds timeout);
  std::optional<Status> wait(std::chrono::milliseconds timeout);
  Consumer::Stats stats() const;
  SessionLease lease() const { return link_.lease(); }

 private:
  struct Held {
    LeasedMessage message;
    LeaseToken token;           // A copy: the handler may move its message away.
    std::uint64_t session = 0;  // The link's session in which it came.
    std::atomic<bool> lost = false;
    std::atomic<bool> finished = false;
  };
  /// Messages that came together, and whose leases are extended together. Lives as long as one of
  /// them waits for a handler or is being handled.
  struct HeldMessages {
    HeldMessages(std::vector<LeasedMessage> messages, std::uint64_t session);

    std::vector<Held> held;
    std::size_t begun = 0;  // Under mutex_: how many were given to a worker.
  };
  using HeldPointer = std::shared_ptr<HeldMessages>;
  /// What a worker is working on.
  struct Hand {
    HeldPointer batch;  // Null while the worker waits.
    std::size_t index = 0;
    bool marked = false;  // The broker was told that the message was begun.
  };
  struct Renewal {
    SteadyClock::time_point due;
    std::weak_ptr<HeldMessages> batch;
  };
  struct Counters {
    std::atomic<std::uint64_t> handled = 0;
    std::atomic<std::uint64_t> acked = 0;
    std::atomic<std::uint64_t> nacked = 0;
    std::atomic<std::uint64_t> released = 0;
    std::atomic<std::uint64_t> lost = 0;
    std::atomic<std::uint64_t> extended = 0;
  };

  LeaseStreamOptions stream_options();

  // Run by the feeder.
  void feed();
  void take(std::vector<LeasedMessage> messages, std::uint64_t session);
  void forget_marks();
  void renew_due();
  void renew(const HeldPointer& batch);
  [[nodiscard]] std::chrono::milliseconds until_next_duty() const;
  void mark_begun();
  void end(const Error& error);

  // Run by the workers.
  void work(Hand& hand);
  void handle(Held& held);
  Outcome run_handler(Held& held);
  void finish(Held& held, Outcome outcome);

  void report(const Error& error) const;
  void release_waiting();

  const ConsumerOptions options_;
  const Consumer::Handler handler_;
  std::atomic<bool> closing_ = false;
  std::atomic<bool> was_connected_ = false;
  std::atomic<bool> reconnected_ = false;  // Since the feeder's last check.
  Counters counters_;

  mutable std::mutex mutex_;
  std::condition_variable work_;     // For workers: a message waits, or closing.
  std::condition_variable ended_;    // For wait().
  std::deque<HeldPointer> waiting_;  // Under mutex_. Each has a message that no worker began.
  std::vector<Hand> hands_;          // Under mutex_. One for each worker.
  std::optional<Status> result_;     // Under mutex_. How the consumer ended.
  bool feeder_stops_ = false;        // Under mutex_.

  // Used by the feeder only.
  std::deque<Renewal> renewals_;  // In order of time.
  SteadyClock::duration visibility_{};
  SteadyClock::time_point next_mark_{};
  std::mutex close_mutex_;        // Held while closing; only other calls of close() wait for it.
  std::optional<Status> closed_;  // Under close_mutex_.

  LeaseLink link_;
  std::thread feeder_;
  std::vector<std::thread> workers_;
};

}  // namespace baton::client
