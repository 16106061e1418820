#include "sdk/stream/batch_accumulator.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "core/stream/murmur2.h"
#include "sdk/base/errors.h"
#include "sdk/stream/record_codec.h"

namespace baton::client {
namespace {

/// A record as the builder takes it. Must not outlive `record`.
struct RecordViews {
  RecordViews(const NewRecord& record, RecordTime time) {
    headers.reserve(record.headers.size());
    for (const RecordHeader& header : record.headers) {
      headers.push_back({.name = header.name, .value = header.value});
    }
    view.key = record.key;
    view.value = record.value;
    view.headers = headers;
    view.timestamp = TimestampMs{time.time_since_epoch().count()};
  }

  std::vector<baton::RecordHeader> headers;
  baton::Record view;
};

}  // namespace

BatchAccumulator::BatchAccumulator(const Options& options)
    : options_(options), open_(options.partitions) {
  BATON_ASSERT(options.partitions > 0);
}

Result<PartitionNumber> BatchAccumulator::partition_of(const NewRecord& record) const {
  if (!record.partition) {
    if (!record.key) return sticky_;
    return PartitionNumber{baton::partition_of(*record.key, options_.partitions)};
  }
  if (record.partition->value < options_.partitions) return *record.partition;
  return Error{Errc::partition_not_found,
               fmt::format("partition {}; the stream has 0 to {}", record.partition->value,
                           options_.partitions - 1)};
}

BatchAccumulator::Open& BatchAccumulator::open_for(PartitionNumber partition) {
  if (!open_[partition.value]) {
    open_[partition.value] =
        std::make_unique<Open>(Open{.builder = BatchBuilder(options_.batch_bytes_max)});
  }
  return *open_[partition.value];
}

Status BatchAccumulator::add(const NewRecord& record, std::size_t cost,
                             StreamProducer::Callback& callback, Time now,
                             std::vector<PendingBatchPointer>& full) {
  BATON_ASSERT(record.timestamp.has_value());
  const auto partition = partition_of(record);
  if (!partition) return partition.error();
  Open& open = open_for(*partition);
  // The cost is never less than what the record takes in the batch, except with many small headers.
  if (!open.builder.empty() && open.builder.bytes() + cost > options_.batch_bytes) {
    full.push_back(close(*partition));
  }
  const RecordViews views(record, record.timestamp.value_or(RecordTime{}));
  Status added = open.builder.add(views.view);
  if (!added && added.error().code == Errc::resource_exhausted) {
    full.push_back(close(*partition));
    added = open.builder.add(views.view);
  }
  if (!added) return added.error();
  if (open.callbacks.empty()) {
    open.first_record = records_;
    opened_.push_back({.partition = *partition, .first_record = records_, .at = now});
    first_records_.insert(records_);
  }
  open.callbacks.push_back(std::move(callback));
  open.cost += cost;
  ++records_;
  if (open.builder.bytes() >= options_.batch_bytes) full.push_back(close(*partition));
  return {};
}

PendingBatchPointer BatchAccumulator::close(PartitionNumber partition) {
  Open& open = *open_[partition.value];
  auto batch = std::make_unique<PendingBatch>();
  batch->partition = partition;
  batch->count = static_cast<std::int32_t>(open.builder.count());
  batch->cost = open.cost;
  batch->first_record = open.first_record;
  batch->callbacks = std::move(open.callbacks);
  auto bytes = open.builder.finish(options_.compression);
  // Compressors cannot fail on what a builder holds.
  BATON_ASSERT(bytes.has_value());
  batch->bytes = *std::move(bytes);
  open.callbacks.clear();
  open.cost = 0;
  first_records_.erase(open.first_record);
  // A batch's worth for each partition: spread over all, and still few batches.
  if (partition == sticky_) sticky_.value = (sticky_.value + 1) % options_.partitions;
  return batch;
}

bool BatchAccumulator::is_open(const Opened& opened) const {
  const Open& open = *open_[opened.partition.value];
  return !open.callbacks.empty() && open.first_record == opened.first_record;
}

std::vector<PendingBatchPointer> BatchAccumulator::take_due(
    Time now, bool all, const std::function<bool(PartitionNumber)>& may_send) {
  std::vector<PendingBatchPointer> due;
  std::erase_if(opened_, [&](const Opened& opened) {
    if (!is_open(opened)) return true;
    if (!all && now < opened.at + options_.linger) return false;
    if (!may_send(opened.partition)) return false;
    due.push_back(close(opened.partition));
    return true;
  });
  return due;
}

std::optional<BatchAccumulator::Time> BatchAccumulator::next_due(
    const std::function<bool(PartitionNumber)>& may_send) const {
  for (const Opened& opened : opened_) {
    if (is_open(opened) && may_send(opened.partition)) return opened.at + options_.linger;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> BatchAccumulator::oldest_record() const {
  if (first_records_.empty()) return std::nullopt;
  return *first_records_.begin();
}

}  // namespace baton::client
