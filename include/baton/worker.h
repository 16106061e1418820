#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <baton/result.h>
#include <baton/security.h>

namespace baton::client {

/// Times of a worker. All workers of a group should use the same; each one's own lease counts.
struct WorkerTiming {
  std::chrono::nanoseconds lease{};          // So long after a silence others may take over.
  std::chrono::nanoseconds heartbeat{};      // 100 ms to two fifths of the lease.
  std::chrono::nanoseconds resync{};         // The whole group is read anew so often.
  std::chrono::nanoseconds drain{};          // For work in progress when a partition moves.
  std::chrono::nanoseconds static_grace{};   // Partitions of a static id wait so long for it.
  std::chrono::nanoseconds reclaim_grace{};  // Before work begins again on one just given up.
};

/// No heartbeat and no resync may be shorter.
inline constexpr std::chrono::milliseconds kWorkerIntervalMin{100};

/// The named settings: "default", "reference", "fast". A store at nats:// or natss:// has a longer
/// lease by default.
Result<WorkerTiming> worker_timing(const std::string& profile, const std::string& store_url);

struct WorkerOptions {
  /// baton://HOST:PORT[/BUCKET], nats://HOST:PORT[,...][/BUCKET] or
  /// etcd://HOST:PORT[,...][/BUCKET]; with TLS batons://, natss:// or etcds://.
  std::string store = "baton://127.0.0.1:7470";
  SecurityOptions security{};  // The store's: TLS, and a login for NATS and etcd.
  std::string group;
  std::string id;  // Empty: made up from the host's name, the process and chance.
  std::uint32_t partitions = 0;
  std::uint32_t weight = 1;
  /// Under this id a worker that restarts finds its partitions as it left them.
  bool static_id = false;
  /// What the work writes to checks epochs. Then work may go on while the store is away, and a
  /// worker whose connection breaks is replaced within a fraction of a second (Baton's own store).
  bool fenced = false;
  std::optional<WorkerTiming> timing;  // Absent: the default profile.
};

/// Called one at a time, on the worker's own thread, which also renews the lease: they must return
/// at once and not throw. All but acquired() are optional, as long as stopped() is called.
///
/// None of them may wait for the worker's end, which cannot come before they return: leave() fails
/// here, wait_for() does not wait, and destroying the Worker ends the process. begin_leave() is
/// for them.
///
/// The first calls may come before Worker::start() has returned: whoever calls stopped() from here
/// needs the Worker that it returns, and has to leave that call to a thread that has it.
struct WorkerCallbacks {
  /// Begin with this partition. Everything written on its behalf carries the epoch.
  std::function<void(std::uint32_t partition, std::uint64_t epoch)> acquired;
  /// Finish what is under way, take nothing new, and call stopped() before the deadline.
  std::function<void(std::uint32_t partition, std::uint64_t epoch,
                     std::chrono::nanoseconds time_left)>
      revoking;
  /// Stop at once, and call stopped(): another may hold it by now.
  std::function<void(std::uint32_t partition, std::uint64_t epoch, const std::string& why)> lost;
  /// What is held may be worked on until then (nanoseconds of CLOCK_BOOTTIME).
  std::function<void(std::chrono::nanoseconds deadline)> renewed;
  /// For the log.
  std::function<void(bool warning, const std::string& text)> note;
};

/// A member of a group of workers that divide partitions among themselves: each partition is with
/// exactly one of them, and is somebody else's soon after its worker leaves, dies or falls silent.
///
/// Thread-safe. The destructor ends as a crash would, and others take over after the lease: call
/// leave() first.
class Worker {
 public:
  struct Stats {
    std::uint64_t store_requests = 0;
    std::uint32_t held = 0;  // Partitions.
    bool blind = false;
  };

  /// Opens the store, which must be there, and joins in the background.
  static Result<std::unique_ptr<Worker>> start(const WorkerOptions& options,
                                               WorkerCallbacks callbacks);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// The work on a partition that was acquired with `epoch` has ended: after revoking() or lost(),
  /// or by itself (it is then acquired again). Once for each acquired(); an epoch that has passed
  /// changes nothing.
  void stopped(std::uint32_t partition, std::uint64_t epoch);
  /// The question before each effect on the world: may this be done now, under this epoch?
  [[nodiscard]] bool may_act(std::uint32_t partition, std::uint64_t epoch) const;

  /// Revokes everything, hands it over once stopped, and ends. `for_good`: even a static id gives
  /// its partitions away. Waits for the end; the error says what was left undone. Not from a
  /// callback: failed_precondition.
  Status leave(bool for_good = false);
  /// Begins to leave, and does not wait.
  void begin_leave(bool for_good = false);
  /// Waits for the end, by leave() or by an error; none after `time`.
  std::optional<Status> wait_for(std::chrono::nanoseconds time);

  [[nodiscard]] const std::string& id() const;
  [[nodiscard]] Stats stats() const;

 private:
  struct State;
  explicit Worker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace baton::client
