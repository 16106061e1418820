#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <baton/numbers.h>
#include <baton/result.h>
#include <baton/security.h>

namespace baton::client {

/// Timing of a worker. All workers of a group should use the same; each one's own lease counts.
struct WorkerTiming {
  std::chrono::milliseconds lease{};  // Others may take over after this long without a heartbeat.
  std::chrono::milliseconds heartbeat{};      // From 100 ms to two fifths of the lease.
  std::chrono::milliseconds resync{};         // How often the whole group is read anew.
  std::chrono::milliseconds drain{};          // Time for work in progress when a partition moves.
  std::chrono::milliseconds static_grace{};   // How long the partitions of a static id wait for it.
  std::chrono::milliseconds reclaim_grace{};  // Pause before taking back a partition given up.
};

/// The minimum of the heartbeat and of the resync interval.
inline constexpr std::chrono::milliseconds kWorkerIntervalMin{100};

/// The named settings: "default", "reference", "fast". For a store at nats:// or natss:// the
/// default lease is longer.
Result<WorkerTiming> worker_timing(const std::string& profile, const std::string& store_url);

struct WorkerOptions {
  /// baton://HOST:PORT[/BUCKET], nats://HOST:PORT[,...][/BUCKET] or
  /// etcd://HOST:PORT[,...][/BUCKET]; with TLS batons://, natss:// or etcds://.
  std::string store = "baton://127.0.0.1:7470";
  SecurityOptions security{};  // The store's: TLS, and a login for NATS and etcd.
  std::string group;
  std::string id;  // Empty: made from the host's name, the process id and chance.
  std::uint32_t partitions = 0;
  std::uint32_t weight = 1;
  /// Whether a worker that restarts under this id gets back the partitions it had.
  bool static_id = false;
  /// Whether what the work writes to checks epochs. If so, work may continue while the store is
  /// away, and (in Baton's store) a worker whose connection breaks is replaced within a second.
  bool fenced = false;
  std::optional<WorkerTiming> timing;  // Absent: the default profile.
};

/// Called one at a time, on the worker's own thread, which also renews the lease: they must return
/// at once and not throw. All but acquired() are optional, as long as stopped() is called.
///
/// None of them may wait for the worker's end, which cannot come before they return: close() fails
/// here, wait() does not wait, and destroying the Worker ends the process. Use begin_close() in a
/// callback.
///
/// The first calls may come before Worker::open() has returned the Worker: a callback that wants
/// to call stopped() leaves that to a thread that has the Worker.
struct WorkerCallbacks {
  /// Begin work on this partition. Everything written on its behalf carries the epoch.
  std::function<void(PartitionNumber partition, Epoch epoch)> acquired;
  /// Finish the work in progress, take nothing new, and call stopped() before the deadline.
  std::function<void(PartitionNumber partition, Epoch epoch, std::chrono::milliseconds time_left)>
      revoking;
  /// Stop at once, and call stopped(): another worker may hold the partition by now.
  std::function<void(PartitionNumber partition, Epoch epoch, const std::string& why)> lost;
  /// The partitions held may be worked on until this time (nanoseconds of CLOCK_BOOTTIME).
  std::function<void(std::chrono::nanoseconds deadline)> renewed;
  /// A line for the log.
  std::function<void(bool warning, const std::string& text)> note;
};

/// A member of a group of workers that divide partitions among themselves: each partition belongs
/// to exactly one of them, and moves to another soon after its worker leaves, dies or falls silent.
///
/// Thread-safe. The destructor ends as a crash would, and others take over after the lease: call
/// close() first. Movable; a moved-from worker may only be destroyed or assigned to.
class Worker {
 public:
  struct Stats {
    std::uint64_t store_requests = 0;
    std::uint32_t held = 0;  // Number of partitions.
    bool blind = false;
  };

  /// Opens the store, which must be reachable, and joins in the background.
  static Result<Worker> open(const WorkerOptions& options, WorkerCallbacks callbacks);
  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Says that the work on a partition that was acquired with `epoch` has ended: after revoking()
  /// or lost(), or by itself (it is then acquired again). Call it once for each acquired(); an
  /// epoch that has passed changes nothing.
  void stopped(PartitionNumber partition, Epoch epoch);
  /// Ask before each effect on the world: may it happen now, under this epoch?
  [[nodiscard]] bool may_act(PartitionNumber partition, Epoch epoch) const;

  /// Revokes everything, hands it over once stopped, and ends. `for_good`: even a static id gives
  /// its partitions away. Waits for the end; the error says what was left undone. In a callback it
  /// fails with failed_precondition.
  Status close(bool for_good = false);
  /// Begins to close, without waiting for the end.
  void begin_close(bool for_good = false);
  /// Waits for the end, by close() or by an error; nullopt when `timeout` passed.
  [[nodiscard]] std::optional<Status> wait(std::chrono::milliseconds timeout);

  [[nodiscard]] const std::string& id() const;
  [[nodiscard]] Stats stats() const;

 private:
  struct State;
  explicit Worker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace baton::client
