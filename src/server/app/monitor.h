#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "server/app/watches.h"
#include "server/session/server_state.h"

namespace baton {

/// Looks after the broker from time to time, on a thread of its own: logs what an operator would
/// want to hear of queues and groups, and gives memory back to the system that streams have used.
class Monitor {
 public:
  explicit Monitor(std::shared_ptr<ServerState> state);
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;
  ~Monitor() { stop(); }

  /// Idempotent.
  void stop();

 private:
  void run();
  void look_for_dead_letters();
  void look_at_groups();
  void give_back_memory();

  std::shared_ptr<ServerState> state_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;

  // The thread's own.
  DeadLetterWatch dead_letters_;
  std::uint64_t dead_lettered_ = 0;
  GroupWatch groups_;
  std::uint64_t streams_ended_ = 0;
  std::thread thread_;
};

}  // namespace baton
