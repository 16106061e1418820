#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/workers/machine.h"
#include "worker/stores/kv_store.h"

namespace baton::worker {

/// The clock of leases: it runs while the machine sleeps, so that no process wakes up believing
/// that a deadline which has passed is still ahead.
Instant boot_time();

/// How a Runner reaches its store.
struct RunnerStore {
  std::unique_ptr<coord::KvStore> store;
  /// Repeats what opened the store: a bucket that is lost is created again.
  std::function<Status()> remake;
};

/// What a Runner reports about its partitions; called on its thread.
struct RunnerEvents {
  std::function<void(const partition::Acquired&)> acquired;
  std::function<void(const partition::Revoking&)> revoking;
  std::function<void(const partition::Lost&)> lost;
  std::function<void(const partition::Renewed&)> renewed;
  std::function<void(const partition::Note&)> note;
};

/// Runs tasks one after another on a thread of its own.
class StoreThread {
 public:
  StoreThread();
  /// Drops tasks that have not begun.
  ~StoreThread();
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;
  void post(std::function<void()> task);

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::function<void()>> tasks_;
  std::jthread thread_;
};

/// Drives a partition::Machine with a real clock and a real store. Thread-safe.
///
/// One thread owns the machine; two more wait for the store, one of them only for renewals, which
/// must not wait behind a slow request.
class Runner {
 public:
  Runner(RunnerStore store, const partition::Settings& settings, RunnerEvents events);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void stopped(std::uint32_t partition, std::uint64_t epoch);
  void leave(bool for_good);
  [[nodiscard]] bool may_act(std::uint32_t partition, std::uint64_t epoch) const;
  std::optional<Status> wait_for(Duration time);
  /// Whether the caller is on the runner's own thread, which calls the events: waiting there for
  /// the end would wait forever.
  [[nodiscard]] bool is_own_thread() const;

  [[nodiscard]] std::uint64_t requests() const { return store_->requests(); }
  [[nodiscard]] std::uint32_t held() const { return held_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool blind() const { return blind_.load(std::memory_order_relaxed); }

 private:
  using Event = std::function<void(partition::Machine&, Instant now)>;
  /// Input that waits for the machine. Watch events are passed to it all at once: while the machine
  /// is busy the same few keys change again and again, and only their newest state counts.
  struct Inbox {
    std::deque<Event> events{};
    std::vector<partition::WatchEvent> seen{};
  };

  void post(Event event);
  void post(partition::WatchEvent seen);
  void run();
  Inbox wait_for_events(Instant until);
  void perform_effects();
  void perform(const partition::Effect& effect);
  void on(const partition::Request& request);
  void on(const partition::OpenWatch& watch);
  void on(const partition::CloseWatch& watch);
  void on(const partition::Acquired& acquired);
  void on(const partition::Revoking& revoking);
  void on(const partition::Lost& lost);
  void on(const partition::Renewed& renewed);
  void on(const partition::Finished& finished);
  void on(const partition::Note& note);
  void execute(const partition::Request& request);
  [[nodiscard]] partition::Reply ask_store(const partition::Request& request);
  void remake_store();

  std::unique_ptr<coord::KvStore> store_;
  const std::function<Status()> remake_;
  const Duration lease_;
  const Duration request_timeout_;
  const bool fenced_;
  const std::string session_prefix_;
  RunnerEvents events_;
  partition::Machine machine_;

  // The epoch of the work that the machine knows of, by partition. Used by the thread only.
  std::vector<std::uint64_t> begun_;
  // For may_act(), from any thread. An epoch of 0: not held.
  std::vector<std::atomic<std::uint64_t>> epochs_;
  std::atomic<std::int64_t> deadline_{0};
  std::atomic<std::uint32_t> held_{0};
  std::atomic<bool> blind_{false};

  std::mutex mutex_;
  std::condition_variable wake_;
  Inbox inbox_;
  bool ending_ = false;
  std::optional<Status> end_;
  std::condition_variable ended_;

  // Used on `others_` only. Declared after `inbox_`, to which its callbacks post: destroyed first.
  std::unique_ptr<coord::Watch> watch_;
  Instant remake_at_;  // Used on `others_` only: next attempt to recreate the store.
  std::atomic<std::uint64_t> wanted_watch_{0};
  StoreThread renewals_;
  StoreThread others_;
  std::jthread thread_;
};

}  // namespace baton::worker
