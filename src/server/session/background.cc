#include "server/session/background.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace baton {
namespace {

/// The clock thread wakes at least this often, because broker time and system time may drift apart.
constexpr Duration kLookUp = std::chrono::seconds{1};

}  // namespace

Background::Background(std::size_t threads, std::function<Instant()> now) : now_(std::move(now)) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  threads_.emplace_back([this] { run_clock(); });
}

Background::~Background() { stop(); }

void Background::post(Task task) {
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void Background::post_at(Instant at, Task task) {
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) return;
    later_.emplace(at, std::move(task));
  }
  wake_clock_.notify_one();
}

void Background::stop() {
  std::deque<Task> dropped;
  std::multimap<Instant, Task> dropped_later;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    dropped.swap(tasks_);
    dropped_later.swap(later_);
  }
  wake_.notify_all();
  wake_clock_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Background::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    // Destroying what the task holds may take long, or post another task, so it happens outside the
    // lock.
    task = nullptr;
    lock.lock();
  }
}

void Background::run_clock() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (later_.empty()) {
      wake_clock_.wait(lock);
      continue;
    }
    const Duration left = later_.begin()->first - now_();
    if (left > Duration{0}) {
      wake_clock_.wait_for(lock, std::min(left, kLookUp));
      continue;
    }
    tasks_.push_back(std::move(later_.begin()->second));
    later_.erase(later_.begin());
    wake_.notify_one();
  }
}

}  // namespace baton
