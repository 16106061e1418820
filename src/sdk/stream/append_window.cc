#include "sdk/stream/append_window.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/assert.h"
#include "core/stream/limits.h"
#include "sdk/base/errors.h"
#include "sdk/base/limits.h"
#include "sdk/stream/record_codec.h"

namespace baton::client {
namespace {

using Fate = PendingBatch::Fate;

constexpr std::size_t kInFlightMax = baton::limits::kProducerBatchesRemembered;

std::int32_t sequence_after(std::int32_t sequence, std::int32_t count) {
  const std::int64_t after = std::int64_t{sequence} + count;
  return static_cast<std::int32_t>(after & std::numeric_limits<std::int32_t>::max());
}

bool means_fenced(Errc code) { return code == Errc::producer_fenced || code == Errc::stale_epoch; }

}  // namespace

AppendWindow::AppendWindow(std::uint32_t partitions, std::optional<Identity> identity)
    : partitions_(partitions), identity_(identity) {}

void AppendWindow::add(PendingBatchPointer batch) {
  const PartitionNumber partition = batch->partition;
  BATON_ASSERT(partition.value < partitions_.size() && batch->fate == Fate::unsent);
  at(partition).batches.push_back(std::move(batch));
  ++batches_;
  refresh(partition);
}

bool AppendWindow::may_send(PartitionNumber partition) const {
  const Partition& found = partitions_[partition.value];
  return phase_ == Phase::open && found.outstanding < kInFlightMax &&
         found.batches.size() == found.outstanding;
}

/// The first batch to be sent now. Batches of unknown fate come before those never sent.
PendingBatch* AppendWindow::next_of(const Partition& partition) const {
  for (const PendingBatchPointer& batch : partition.batches) {
    if (batch->fate == Fate::unknown) return batch.get();
    if (batch->fate == Fate::rejected) continue;  // Only while draining.
    if (batch->fate == Fate::in_flight) continue;
    const bool room = partition.outstanding < kInFlightMax;
    return phase_ == Phase::open && room ? batch.get() : nullptr;
  }
  return nullptr;
}

void AppendWindow::refresh(PartitionNumber partition) {
  if (next_of(at(partition)) != nullptr) {
    ready_.insert(partition);
  } else {
    ready_.erase(partition);
  }
}

void AppendWindow::refresh_all() {
  for (std::uint32_t i = 0; i < partitions_.size(); ++i) refresh(PartitionNumber{i});
}

void AppendWindow::send(Partition& partition, PendingBatch& batch) {
  if (batch.fate == Fate::unknown) {
    ++resent_;
  } else {
    ++partition.outstanding;
    ++outstanding_;
  }
  batch.fate = Fate::in_flight;
  if (!identity_ || batch.stamp) return;
  batch.stamp = ProducerStamp{.id = identity_->id,
                              .epoch = identity_->epoch,
                              .sequence = Sequence32{partition.next_sequence}};
  partition.next_sequence = sequence_after(partition.next_sequence, batch.count);
  stamp_batch(batch.bytes, *batch.stamp);
}

std::span<PendingBatch* const> AppendWindow::next_frame(std::size_t bytes_max) {
  Frame frame;
  std::size_t bytes = 0;
  // Takes one batch of each partition in turn, until the frame is full.
  while (!ready_.empty() && frame.size() < limits::kAppendFrameBatches) {
    auto next = ready_.lower_bound(turn_);
    if (next == ready_.end()) next = ready_.begin();
    const PartitionNumber number = *next;
    PendingBatch* const batch = next_of(at(number));
    BATON_ASSERT(batch != nullptr);
    if (!frame.empty() && bytes + batch->bytes.size() > bytes_max) break;
    bytes += batch->bytes.size();
    send(at(number), *batch);
    frame.push_back(batch);
    refresh(number);
    turn_.value = number.value + 1;
  }
  if (frame.empty()) return {};
  frames_.push_back(std::move(frame));
  return frames_.back();
}

Status AppendWindow::check(const Frame& frame, std::span<const AppendResult> results) const {
  if (frame.size() != results.size()) {
    return Error{Errc::internal, fmt::format("the broker answered {} results to {} batches",
                                             results.size(), frame.size())};
  }
  for (std::size_t i = 0; i < frame.size(); ++i) {
    const PartitionNumber partition = frame[i]->partition;
    // A refusal of the whole request names no partition.
    if (results[i].ok() && results[i].partition != partition) {
      return Error{Errc::internal, fmt::format("the broker answered for partition {} instead of {}",
                                               results[i].partition.value, partition.value)};
    }
    // Batches go out in the order of their sequence numbers, so the offsets of duplicates grow too.
    const bool known = results[i].ok() && results[i].offset.value >= 0;
    if (known && results[i].offset < partitions_[partition.value].offset_min) {
      return Error{Errc::internal,
                   fmt::format("the broker confirmed offset {} of partition {} twice",
                               results[i].offset.value, partition.value)};
    }
  }
  return {};
}

Result<std::vector<AppendWindow::Settled>> AppendWindow::answered(
    std::span<const AppendResult> results) {
  if (frames_.empty()) {
    return Error{Errc::internal, "the broker answered more often than it was asked"};
  }
  BATON_TRY_STATUS(check(frames_.front(), results));
  const Frame frame = std::move(frames_.front());
  frames_.pop_front();
  std::vector<Settled> settled;
  for (std::size_t i = 0; i < frame.size(); ++i) settle(*frame[i], results[i], settled);
  end_drain();
  return settled;
}

PendingBatchPointer AppendWindow::take(PendingBatch& batch) {
  auto& batches = at(batch.partition).batches;
  const auto found = std::ranges::find(batches, &batch, &PendingBatchPointer::get);
  BATON_ASSERT(found != batches.end());
  PendingBatchPointer taken = std::move(*found);
  batches.erase(found);
  --batches_;
  return taken;
}

void AppendWindow::settle(PendingBatch& batch, const AppendResult& result,
                          std::vector<Settled>& settled) {
  Partition& partition = at(batch.partition);
  BATON_ASSERT(batch.fate == Fate::in_flight);
  --partition.outstanding;
  --outstanding_;
  const PartitionNumber number = batch.partition;
  if (takes_again(batch, result)) {
    batch.fate = Fate::rejected;
  } else {
    if (result.ok() && result.offset.value >= 0) {
      partition.offset_min = Offset{result.offset.value + batch.count};
    }
    settled.push_back({.batch = take(batch),
                       .offset = result.offset,
                       .duplicate = result.duplicate,
                       .error = result.error});
  }
  refresh(number);
}

/// Decides what a result means for the window. True: the batch was not stored, and is sent again.
bool AppendWindow::takes_again(PendingBatch& batch, const AppendResult& result) {
  if (!result.error) return false;
  const Errc code = result.error->code;
  if (identity_ && means_fenced(code)) {
    fenced_ = result.error;
    return false;
  }
  const bool gap = identity_ && code == Errc::sequence_gap;
  const bool busy = code == Errc::unavailable;
  // Batches behind a refused one are not at fault: only the first refusal counts.
  const bool innocent = gap && phase_ == Phase::draining;
  if ((gap || busy) && (innocent || ++batch.tries < limits::kBatchTriesMax)) {
    drain(gap && !innocent);
    return true;
  }
  if (identity_) drain(true);
  return false;
}

void AppendWindow::drain(bool new_epoch) {
  wants_epoch_ = wants_epoch_ || new_epoch;
  if (phase_ != Phase::open) return;
  phase_ = Phase::draining;
  ready_.clear();
  refresh_all();
}

void AppendWindow::end_drain() {
  if (phase_ != Phase::draining || outstanding_ > 0) return;
  phase_ = wants_epoch_ ? Phase::asking : Phase::resting;
}

void AppendWindow::put_rejected_back(bool forget_stamps) {
  for (Partition& partition : partitions_) {
    BATON_ASSERT(partition.outstanding == 0);
    if (forget_stamps) partition.next_sequence = 0;
    for (const PendingBatchPointer& batch : partition.batches) {
      batch->fate = Fate::unsent;
      if (forget_stamps) batch->stamp.reset();
    }
  }
  phase_ = Phase::open;
  wants_epoch_ = false;
  refresh_all();
}

void AppendWindow::resume() {
  BATON_ASSERT(phase_ == Phase::resting);
  put_rejected_back(false);
}

void AppendWindow::begin_epoch(const Identity& identity) {
  BATON_ASSERT(phase_ == Phase::asking);
  identity_ = identity;
  put_rejected_back(true);
}

void AppendWindow::session_broke() {
  for (const Frame& frame : frames_) {
    for (PendingBatch* const batch : frame) batch->fate = Fate::unknown;
  }
  frames_.clear();
  // Another broker's offsets may begin lower, if it lost records that were never synced.
  for (Partition& partition : partitions_) partition.offset_min = Offset{};
  refresh_all();
}

std::vector<PendingBatchPointer> AppendWindow::clear() {
  std::vector<PendingBatchPointer> all;
  for (Partition& partition : partitions_) {
    for (PendingBatchPointer& batch : partition.batches) all.push_back(std::move(batch));
    partition.batches.clear();
    partition.outstanding = 0;
  }
  ready_.clear();
  frames_.clear();
  batches_ = 0;
  outstanding_ = 0;
  return all;
}

}  // namespace baton::client
