#include "server/app/monitor.h"

#include <malloc.h>

#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/logging/log.h"
#include "server/session/ask_shard.h"

namespace baton {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDeadLetterInterval{5};
constexpr std::chrono::seconds kGroupInterval{30};
constexpr std::chrono::seconds kMemoryInterval{10};
constexpr std::chrono::milliseconds kTick{500};
// The most lines of a kind in one check; the rest is counted.
constexpr std::size_t kLinesMax = 20;
// How many streams must have ended before giving back their memory is worth the effort.
constexpr std::uint64_t kStreamsWorthIt = 32;

bool is_due(Clock::time_point& next, Clock::duration interval) {
  const auto now = Clock::now();
  if (now < next) return false;
  next = now + interval;
  return true;
}

}  // namespace

Monitor::Monitor(std::shared_ptr<ServerState> state)
    : state_(std::move(state)), thread_([this] { run(); }) {}

void Monitor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Monitor::run() {
  const auto began = Clock::now();
  Clock::time_point dead_letters = began;
  Clock::time_point groups = began + kGroupInterval;
  Clock::time_point memory = began + kMemoryInterval;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kTick, [this] { return stopping_; })) {
    lock.unlock();
    if (is_due(dead_letters, kDeadLetterInterval)) look_for_dead_letters();
    if (is_due(groups, kGroupInterval)) look_at_groups();
    if (is_due(memory, kMemoryInterval)) give_back_memory();
    lock.lock();
  }
}

void Monitor::look_for_dead_letters() {
  std::uint64_t total = 0;
  for (std::size_t shard = 0; shard < state_->broker.shards(); ++shard) {
    total += state_->broker.stats(shard).dead_lettered;
  }
  if (std::exchange(dead_lettered_, total) == total) return;
  for (std::size_t shard = 0; shard < state_->broker.shards(); ++shard) {
    const auto listed = ask_shard(state_->broker, shard, ListQueuesCommand{});
    if (!listed.has_value()) continue;
    const auto names = dead_letters_.look(listed->descriptions);
    for (std::size_t i = 0; i < names.size() && i < kLinesMax; ++i) {
      spdlog::warn("event=first_dead_letter queue={}", log_value(names[i]));
    }
    if (names.size() > kLinesMax) {
      spdlog::warn("event=first_dead_letter more_queues={}", names.size() - kLinesMax);
    }
  }
}

void Monitor::look_at_groups() {
  std::vector<GroupReport> groups;
  for (std::size_t shard = 0; shard < state_->broker.shards(); ++shard) {
    auto listed = ask_shard(state_->broker, shard, ListGroupsCommand{});
    if (!listed.has_value()) return;
    for (GroupReport& group : listed->groups) groups.push_back(std::move(group));
  }
  const auto alone = groups_.look(groups);
  for (std::size_t i = 0; i < alone.size() && i < kLinesMax; ++i) {
    const auto& [group, lag] = alone[i];
    spdlog::warn("event=group_without_consumer stream={} partition={} group={} lag={}",
                 log_value(group.stream), group.partition, log_value(group.name), lag);
  }
  if (alone.size() > kLinesMax) {
    spdlog::warn("event=group_without_consumer more_groups={}", alone.size() - kLinesMax);
  }
}

void Monitor::give_back_memory() {
  std::uint64_t ended = 0;
  for (const OperationInfo& operation : kOperations) {
    if (operation.shape == Shape::session) ended += state_->counters.ended(operation.id);
  }
  if (ended - streams_ended_ < kStreamsWorthIt) return;
  streams_ended_ = ended;
  // Otherwise the allocator keeps the buffers of many streams.
  ::malloc_trim(0);
}

}  // namespace baton
