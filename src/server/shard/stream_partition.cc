#include "server/shard/stream_partition.h"

#include <algorithm>
#include <utility>

namespace baton {

StreamPartition::StreamPartition(StreamId stream, PartitionNumber number,
                                 std::unique_ptr<PartitionLog> log)
    : stream_(stream),
      number_(number),
      log_(std::move(log)),
      synced_end_(log_->reader().next().value) {}

Status StreamPartition::sync() {
  BATON_TRY(const Offset end, log_->sync());
  synced_end_ = end.value;
  log_->publish(end);
  wake_all();
  return {};
}

void StreamPartition::publish_all() {
  log_->publish(log_->next());
  wake_all();
}

bool StreamPartition::wait(Offset offset, const std::weak_ptr<PartitionWaiter>& waiter) {
  const std::scoped_lock lock(mutex_);
  // Checked under the lock: a publication after this finds the waiter.
  if (closed() || reader().next() > offset) return false;
  // In a partition that does not grow, waiters that are gone would accumulate for ever.
  if (waiters_.size() >= prune_at_) {
    std::erase_if(waiters_, [](const auto& waiting) { return waiting.expired(); });
    prune_at_ = std::max(kPruneAtMin, 2 * waiters_.size());
  }
  waiters_.push_back(waiter);
  return true;
}

std::size_t StreamPartition::waiters() {
  const std::scoped_lock lock(mutex_);
  return waiters_.size();
}

void StreamPartition::close() {
  closed_ = true;
  wake_all();
}

void StreamPartition::wake_all() {
  std::vector<std::weak_ptr<PartitionWaiter>> waiters;
  {
    const std::scoped_lock lock(mutex_);
    waiters.swap(waiters_);
  }
  for (const auto& waiting : waiters) {
    if (const auto waiter = waiting.lock(); waiter != nullptr) waiter->wake();
  }
}

}  // namespace baton
