#include "pipeline/kafka/kafka_seats.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "pipeline/engine/gate.h"
#include "pipeline/kafka/kafka_config.h"
#include "pipeline/kafka/kafka_lookup.h"

namespace baton::pipeline {
namespace {

constexpr Duration kAskAgain = std::chrono::milliseconds(200);
constexpr Duration kLookUp = std::chrono::seconds(5);
constexpr Duration kEndTime = std::chrono::seconds(1);
constexpr Duration kLookAtOldest = std::chrono::seconds(2);
// The most records from one partition at a time: other partitions and a rebalance wait meanwhile.
constexpr std::size_t kChunkRecords = 128;
constexpr std::size_t kChunkBytes = std::size_t{1} << 20U;
constexpr std::size_t kAskersMax = 64;

void ring(rd_kafka_t* /*handle*/, void* bell) { static_cast<Bell*>(bell)->ring(); }

KafkaPartitionList new_list(std::size_t size) {
  return KafkaPartitionList(rd_kafka_topic_partition_list_new(static_cast<int>(size)));
}

/// The seats after `last`, and then from the beginning.
template <class Seats>
auto in_turn(Seats& seats, std::uint32_t last) {
  auto next = seats.upper_bound(last);
  return next == seats.end() ? seats.begin() : next;
}

}  // namespace

KafkaSeats::KafkaSeats(Context context)
    : context_(std::move(context)), options_(*context_.options) {}

KafkaSeats::~KafkaSeats() = default;

void KafkaSeats::log(bool warning, const std::string& text) const {
  if (options_.log) options_.log(warning, text);
}

/// Logs once, not at every retry.
void KafkaSeats::log_trouble(const Error& error) {
  if (std::exchange(trouble_, error.text) == error.text) return;
  log(true, fmt::format("{}; asking again", to_string(error)));
}

void KafkaSeats::add(std::uint32_t partition) {
  Seat seat;
  seat.epoch = ++epochs_;
  seat.queue.reset(rd_kafka_queue_get_partition(context_.handle, options_.topic.c_str(),
                                                static_cast<std::int32_t>(partition)));
  BATON_ASSERT(seat.queue != nullptr);
  // Each partition's records have their own queue, so that the group is polled even if they wait.
  rd_kafka_queue_forward(seat.queue.get(), nullptr);
  rd_kafka_queue_cb_event_enable(seat.queue.get(), ring, context_.bell);
  const std::scoped_lock lock(mutex_);
  seats_.insert_or_assign(partition, std::move(seat));
}

void KafkaSeats::assign(const rd_kafka_topic_partition_list_t& partitions) {
  for (const auto& one : std::span(partitions.elems, static_cast<std::size_t>(partitions.cnt))) {
    add(static_cast<std::uint32_t>(one.partition));
  }
  if (look_up()) (void)ask();
  ask_at_ = boot_time() + kAskAgain;
  apply();
}

void KafkaSeats::settle() {
  const Instant now = boot_time();
  if (now < ask_at_) return;
  ask_at_ = now + kAskAgain;
  if (gap_.has_value()) return end_with(*gap_);
  for (auto& [partition, seat] : seats_) {
    if (seat.out_of_range && has_ended(seat)) begin_again(partition, seat);
  }
  const bool settled =
      std::ranges::all_of(seats_, [](const auto& one) { return one.second.ready; });
  if (!settled && look_up() && ask()) apply();
}

/// Asks for the group's offsets of those partitions whose offset is not known yet.
bool KafkaSeats::look_up() {
  std::vector<std::uint32_t> unknown;
  for (const auto& [partition, seat] : seats_) {
    if (!seat.next.has_value()) unknown.push_back(partition);
  }
  if (unknown.empty()) return true;
  const auto committed = committed_of(*context_.handle, options_.topic, unknown, kLookUp);
  if (!committed.has_value()) {
    const bool hopeless = committed.error().code == Errc::failed_precondition;
    hopeless ? context_.fail(committed.error()) : log_trouble(committed.error());
    return false;
  }
  for (const auto& [partition, offset] : *committed) {
    Seat& seat = seats_.at(partition);
    seat.is_first = !offset.has_value();
    seat.next = offset.has_value() ? offset : beginning(partition);
    if (!seat.next.has_value()) return false;
  }
  trouble_.clear();
  return true;
}

/// Where a partition begins for which the group has never committed.
std::optional<std::int64_t> KafkaSeats::beginning(std::uint32_t partition) {
  const auto range = range_of(*context_.handle, options_.topic, partition, kLookUp);
  if (!range.has_value()) {
    log_trouble(range.error());
    return std::nullopt;
  }
  return options_.from == "next" ? range->next : range->first;
}

/// True if there is a new partition to fetch.
bool KafkaSeats::ask() {
  bool changed = false;
  for (auto& [partition, seat] : seats_) {
    if (seat.ready || !seat.next.has_value()) continue;
    const auto begin = context_.listener->assigned(partition, seat.epoch, *seat.next);
    // The sink is unavailable, and will fail for the next partition, too.
    if (!begin.has_value()) break;
    const std::scoped_lock lock(mutex_);
    seat.begin = seat.position = *begin;
    seat.ready = changed = true;
    // Otherwise a group that restarts before its first record would begin elsewhere.
    if (seat.is_first) seat.stored = begin;
  }
  return changed;
}

/// Makes librdkafka fetch the seats that are ready, each from its position.
void KafkaSeats::apply() {
  match_pauses();
  const KafkaPartitionList list = new_list(seats_.size());
  for (const auto& [partition, seat] : seats_) {
    if (!seat.ready) continue;
    rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(),
                                      static_cast<std::int32_t>(partition))
        ->offset = seat.position;
  }
  const rd_kafka_resp_err_t error = rd_kafka_assign(context_.handle, list.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return context_.fail(to_error(error, "the partitions cannot be read"));
  }
  // A new assignment drops offsets that were stored and not committed yet.
  for (const auto& [partition, seat] : seats_) {
    if (seat.ready && seat.stored.has_value()) (void)store_offset(partition, *seat.stored);
  }
}

void KafkaSeats::pause(bool wanted) {
  if (std::exchange(pause_wanted_, wanted) != wanted) match_pauses();
}

/// Called before partitions are fetched, so that an open breaker covers new ones. Never resumes a
/// partition that is not paused: that would rewind it.
void KafkaSeats::match_pauses() {
  const KafkaPartitionList list = new_list(seats_.size());
  for (const auto& [partition, seat] : seats_) {
    if (!seat.ready || paused_.contains(partition) == pause_wanted_) continue;
    rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(),
                                      static_cast<std::int32_t>(partition));
    if (pause_wanted_) {
      paused_.insert(partition);
    } else {
      paused_.erase(partition);
    }
  }
  if (list->cnt == 0) return;
  if (pause_wanted_) {
    (void)rd_kafka_pause_partitions(context_.handle, list.get());
  } else {
    (void)rd_kafka_resume_partitions(context_.handle, list.get());
  }
}

bool KafkaSeats::deliver() {
  bool more = false;
  auto next = in_turn(seats_, served_last_);
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    auto& [partition, seat] = *next;
    if (seat.ready && seat.wanted) {
      if (!context_.listener->has_room()) return false;
      more = deliver(partition, seat) || more;
      served_last_ = partition;
    }
    if (++next == seats_.end()) next = seats_.begin();
  }
  return more;
}

bool KafkaSeats::deliver(std::uint32_t partition, Seat& seat) {
  if (!seat.out_of_range && !gap_.has_value()) fill(seat);
  if (seat.held.empty()) return false;
  const bool full = seat.held.size() >= kChunkRecords;
  seat.wanted = context_.listener->offer(partition, seat.held);
  return seat.wanted && full && seat.held.empty();
}

void KafkaSeats::fill(Seat& seat) {
  std::size_t bytes = 0;
  while (seat.held.size() < kChunkRecords && bytes < kChunkBytes) {
    const KafkaMessage message(rd_kafka_consume_queue(seat.queue.get(), 0));
    if (message == nullptr) return;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) return failed_fetch(seat, *message);
    if (message->offset < seat.position) continue;  // Already delivered.
    seat.position = message->offset + 1;
    seat.held.push_back(to_record(*message));
    bytes += seat.held.back().bytes();
  }
}

void KafkaSeats::failed_fetch(Seat& seat, const rd_kafka_message_t& message) {
  switch (message.err) {
    case RD_KAFKA_RESP_ERR__PARTITION_EOF: return;
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      seat.out_of_range = true;
      ask_at_ = {};
      if (has_ended(seat)) return;
      return log(true, fmt::format("topic '{}', partition {}: offset {} is due and not there; what "
                                   "was read before it comes to its end first",
                                   options_.topic, message.partition, seat.position));
    default: break;
  }
  context_.report(message.err, rd_kafka_message_errstr(&message));
}

/// Whether everything that was read is finished and stored. Until then it exists only here: the
/// topic may already have deleted it.
bool KafkaSeats::has_ended(const Seat& seat) const {
  const std::scoped_lock lock(mutex_);
  return seat.held.empty() && (seat.position == seat.begin || seat.stored == seat.position);
}

/// The next records do not exist: they were deleted before they were read, or the topic is another
/// one.
void KafkaSeats::begin_again(std::uint32_t partition, Seat& seat) {
  const auto range = range_of(*context_.handle, options_.topic, partition, kLookUp);
  if (!range.has_value()) return log_trouble(range.error());
  const std::string what = fmt::format(
      "topic '{}', partition {}: offset {} is due, but there are only those from {} to before {}",
      options_.topic, partition, seat.position, range->first, range->next);
  // The offset comes from the sink's marks, for which no other offset is known to be right.
  if (options_.from == "error" || seat.begin != seat.next) {
    return end_with({Errc::offset_out_of_range, what});
  }
  const std::int64_t next = options_.from == "next" ? range->next : range->first;
  log(true, fmt::format("{}; going on with {}", what, next));
  context_.listener->revoking(partition);
  (void)context_.listener->revoked(partition, false);
  const std::scoped_lock lock(mutex_);
  seat.epoch = ++epochs_;
  seat.next = next;
  seat.is_first = true;
  seat.ready = seat.out_of_range = false;
  seat.wanted = true;
  seat.stored.reset();
}

void KafkaSeats::end_with(Error gap) {
  const bool ended =
      std::ranges::all_of(seats_, [this](const auto& one) { return has_ended(one.second); });
  if (ended) return context_.fail(std::move(gap));
  if (!gap_.has_value()) {
    log(true, fmt::format("{}; ending, once everything that was read is written", gap.text));
  }
  gap_ = std::move(gap);
}

void KafkaSeats::deliver_last_copies() {
  for (auto& [partition, seat] : seats_) {
    if (seat.held.empty()) continue;
    const std::optional<std::int64_t> first = oldest(partition);
    if (!first.has_value() || seat.held.front().offset >= *first) continue;
    (void)context_.listener->deliver(partition, std::exchange(seat.held, {}));
  }
}

KafkaSeats::Marks KafkaSeats::ask_marks(bool lost, Duration time) {
  const Instant end = boot_time() + time;
  std::vector<std::pair<std::uint32_t, std::optional<std::int64_t>>> asked;
  for (const auto& [partition, seat] : seats_) {
    if (seat.ready) asked.emplace_back(partition, std::nullopt);
  }
  std::atomic<std::size_t> next{0};
  const auto ask = [&] {
    for (std::size_t i = next++; i < asked.size(); i = next++) {
      // Records that are late count as lost: the next owner reads them again.
      const bool late = boot_time() >= end;
      asked[i].second = context_.listener->revoked(asked[i].first, lost || late);
    }
  };
  {
    // In parallel, to wait as long as the slowest instead of the sum.
    std::vector<std::jthread> askers;
    while (askers.size() + 1 < std::min(asked.size(), kAskersMax)) askers.emplace_back(ask);
    ask();
  }
  Marks marks;
  for (const auto& [partition, mark] : asked) {
    if (mark.has_value()) marks.emplace(partition, *mark);
  }
  return marks;
}

KafkaSeats::Marks KafkaSeats::revoke(bool lost, Duration time) {
  gap_.reset();  // The next owner of the partition meets the gap, too.
  for (const auto& [partition, seat] : seats_) {
    if (seat.ready) context_.listener->revoking(partition);
  }
  Marks marks = ask_marks(lost, time);
  // The assignment may have been lost during the wait.
  if (lost || rd_kafka_assignment_lost(context_.handle) != 0) marks.clear();
  std::map<std::uint32_t, Seat> given_up;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [partition, mark] : marks) (void)store_offset(partition, mark);
    given_up.swap(seats_);
  }
  (void)rd_kafka_assign(context_.handle, nullptr);
  for (const auto& [partition, seat] : given_up) release(*seat.queue);
  return marks;
}

/// Forwards the queue to the group, which discards further records. Records left in the queue would
/// hold the partition, which holds the queue, and rd_kafka_destroy() would wait for ever.
void KafkaSeats::release(rd_kafka_queue_t& queue) {
  rd_kafka_queue_cb_event_enable(&queue, nullptr, nullptr);
  while (KafkaMessage(rd_kafka_consume_queue(&queue, 0)) != nullptr) {
  }
  rd_kafka_queue_forward(&queue, context_.group_queue);
}

rd_kafka_resp_err_t KafkaSeats::store_offset(std::uint32_t partition, std::int64_t next) {
  const KafkaPartitionList list = new_list(1);
  rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(),
                                    static_cast<std::int32_t>(partition))
      ->offset = next;
  const rd_kafka_resp_err_t error = rd_kafka_offsets_store(context_.handle, list.get());
  return error != RD_KAFKA_RESP_ERR_NO_ERROR ? error : list->elems[0].err;
}

Status KafkaSeats::store(std::uint32_t partition, std::uint64_t epoch, std::int64_t next) {
  const std::scoped_lock lock(mutex_);
  const auto found = seats_.find(partition);
  if (found == seats_.end() || found->second.epoch != epoch || !found->second.ready) {
    return Error{Errc::stale_epoch, fmt::format("partition {}, epoch {}", partition, epoch)};
  }
  Seat& seat = found->second;
  if (seat.stored.has_value() && next <= *seat.stored) return {};
  const rd_kafka_resp_err_t error = store_offset(partition, next);
  // The partition is being revoked: revoke() stores the offset once more.
  if (error == RD_KAFKA_RESP_ERR__STATE) {
    return Error{Errc::stale_epoch, fmt::format("partition {} is not assigned", partition)};
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return to_error(error, fmt::format("partition {}, offset {}", partition, next));
  }
  seat.stored = next;
  return {};
}

void KafkaSeats::look_at_end() {
  if (seats_.empty()) return;
  auto& [partition, seat] = *in_turn(seats_, looked_last_);
  looked_last_ = partition;
  const auto range = range_of(*context_.handle, options_.topic, partition, kEndTime);
  if (!range.has_value()) return;
  const std::scoped_lock lock(mutex_);
  seat.end = range->next;
}

std::optional<std::int64_t> KafkaSeats::oldest(std::uint32_t partition) const {
  const auto range = range_of(*context_.handle, options_.topic, partition, kLookAtOldest);
  return range.has_value() ? std::optional(range->first) : std::nullopt;
}

std::vector<PartitionLag> KafkaSeats::ends() const {
  const std::scoped_lock lock(mutex_);
  std::vector<PartitionLag> result;
  for (const auto& [partition, seat] : seats_) {
    std::int64_t first = -1;
    std::int64_t next = -1;
    // From the last fetch; no request is sent.
    (void)rd_kafka_get_watermark_offsets(context_.handle, options_.topic.c_str(),
                                         static_cast<std::int32_t>(partition), &first, &next);
    next = std::max(next, seat.end);
    if (next >= 0) result.push_back({partition, next});
  }
  return result;
}

}  // namespace baton::pipeline
