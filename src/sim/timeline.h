#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/time.h"

namespace baton {

/// The simulation's clock: tasks ordered by (instant, order of scheduling). Time jumps from one
/// task to the next and stands still while one runs. One thread.
class Timeline {
 public:
  using Task = std::function<void()>;

  [[nodiscard]] Instant now() const { return now_; }

  void after(Duration delay, Task task) {
    tasks_.emplace(std::pair(now_ + delay, next_++), std::move(task));
  }

  /// Runs the next task; false when there is none.
  bool step() {
    if (tasks_.empty()) return false;
    const auto next = tasks_.extract(tasks_.begin());
    now_ = next.key().first;
    next.mapped()();
    return true;
  }

 private:
  std::map<std::pair<Instant, std::uint64_t>, Task> tasks_;
  std::uint64_t next_ = 0;
  Instant now_;
};

}  // namespace baton
