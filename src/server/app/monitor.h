#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "server/app/watches.h"
#include "server/session/server_state.h"

namespace baton {

/// Checks the broker regularly, on its own thread: logs what an operator wants to know about queues
/// and groups, and gives memory that streams have used back to the system.
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

  // Only for the thread.
  DeadLetterWatch dead_letters_;
  std::uint64_t dead_lettered_ = 0;
  GroupWatch groups_;
  std::uint64_t streams_ended_ = 0;
  std::thread thread_;
};

}  // namespace baton
