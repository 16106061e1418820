#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <baton/worker.h>

#include "base/time.h"
#include "worker/guardian/guardian_process.h"
#include "worker/guardian/handler_book.h"

namespace baton::worker {

/// What happens to a worker and its handlers, for people and programs that watch.
struct HostEvent {
  enum class Kind : std::uint8_t {
    started,  // The store is open; the worker joins.
    acquired,
    revoking,
    stopped,
    lost,
    renewed,
    note,
    handler_started,
    handler_ended,  // By itself or with the lease; it will be started again.
  };
  Kind kind = Kind::note;
  Instant at;            // CLOCK_BOOTTIME.
  std::string worker{};  // Its id.
  HandlerTask task{};
  std::string text{};  // lost: why; note.
  bool warning = false;
  bool lease_over = false;  // handler_ended: the lease was ending; restarts when it is renewed.
  Duration time{};  // revoking: the time left; renewed: the deadline; handler_ended: the pause.
  pid_t pid = 0;
  int code = 0;
};

struct HostOptions {
  client::WorkerOptions worker;
  /// The handler and its arguments; empty: partitions are held without any work on them.
  std::vector<std::string> command{};
  /// Called from one thread; a slow callback delays the handlers.
  std::function<void(const HostEvent&)> tell;
};

/// A worker whose work is done by handler processes, one per partition. Thread-safe.
///
/// The worker's own thread only queues events here; one more thread talks to the guardian.
class WorkerHost {
 public:
  /// Call before other threads are started: the guardian inherits the process as it is.
  static Result<std::unique_ptr<WorkerHost>> start(HostOptions options);
  WorkerHost(const WorkerHost&) = delete;
  WorkerHost& operator=(const WorkerHost&) = delete;
  /// Kills every handler that still runs.
  ~WorkerHost();

  void leave(bool for_good);
  /// Kills handlers that are stopping.
  void hurry();
  /// Sends a signal to every handler.
  void signal(int number);
  /// Waits for the end; nullopt after `time`.
  std::optional<Status> wait_for(Duration time);
  [[nodiscard]] const std::string& id() const { return worker_->id(); }

 private:
  using Task = std::function<void()>;

  explicit WorkerHost(HostOptions options);
  client::WorkerCallbacks callbacks();
  void post(Task task);
  void run();
  void wait_for_something();
  void run_tasks();
  void listen_to_guardian();
  void guardian_gone();
  void perform();
  void act(const GuardCommand& command);
  void act(const HandlerBook::Stopped& stopped);
  void act(const HandlerBook::WillRestart& restart);
  void on(const HandlerStarted& report);
  void on(const HandlerEnded& report);
  void tell(HostEvent event) const;

  HostOptions options_;
  std::unique_ptr<GuardianProcess> guardian_;
  std::atomic<bool> guardian_lost_{false};

  std::mutex mutex_;
  std::deque<Task> tasks_;  // Under mutex_; at most a few for each partition.
  int wake_ = -1;           // An eventfd.
  std::atomic<bool> ending_{false};

  // Used by the thread only.
  HandlerBook book_;
  std::map<std::uint32_t, pid_t> pids_;

  std::unique_ptr<client::Worker> worker_;
  std::thread thread_;
};

}  // namespace baton::worker
