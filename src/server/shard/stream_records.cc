#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/stream/murmur2.h"
#include "core/stream/records.h"
#include "server/shard/stream_shard.h"

/// Plain records: a StreamShard puts them into batches, as a producer does.
namespace baton {
namespace {

std::size_t field_bytes(const std::optional<std::string>& field) {
  return field.has_value() ? field->size() : 0;
}

std::size_t record_bytes(const NewRecord& record) {
  std::size_t bytes = 2 * kCommandBytes + field_bytes(record.key) + field_bytes(record.value);
  for (const auto& [name, value] : record.headers) {
    bytes += kCommandBytes + name.size() + field_bytes(value);
  }
  return bytes;
}

/// Makes the batches of one partition.
class BatchMaker {
 public:
  BatchMaker(PartitionNumber partition, std::size_t bytes_max)
      : partition_(partition), builder_(bytes_max) {}

  /// Adds the record; if the present batch is full, to a new one.
  Status add(const Record& record, std::size_t place, AppendCommand& made) {
    Status added = builder_.add(record);
    if (!added.has_value() && added.error().code == Errc::resource_exhausted && !builder_.empty()) {
      BATON_TRY_STATUS(finish(made));
      added = builder_.add(record);
    }
    if (added.has_value()) places_.push_back(place);
    return added;
  }

  Status finish(AppendCommand& made) {
    if (builder_.empty()) return {};
    BATON_TRY(std::string bytes, builder_.finish());
    made.batches.push_back({partition_, std::move(bytes)});
    batches_.push_back(std::exchange(places_, {}));
    numbers_.push_back(made.batches.size() - 1);
    return {};
  }

  /// Gives each record the outcome of its batch.
  void tell(const AppendCommand& made, std::vector<BatchOutcome>& outcomes) const {
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const BatchOutcome& outcome = made.outcomes[numbers_[i]];
      std::int64_t index = 0;
      for (const std::size_t place : batches_[i]) {
        outcomes[place] = outcome;
        if (outcome.error.has_value()) continue;
        outcomes[place].offset = Offset{outcome.offset.value + index++};
      }
    }
  }

 private:
  PartitionNumber partition_;
  BatchBuilder builder_;
  std::vector<std::size_t> places_;                // Of the records in the present batch.
  std::vector<std::vector<std::size_t>> batches_;  // Of the records in the finished batches,
  std::vector<std::size_t> numbers_;               // and the indexes of those batches.
};

}  // namespace

std::string_view StreamShard::name_of(const StreamCommand& command) {
  return std::visit([](const auto& wanted) { return std::string_view(wanted.stream); }, command);
}

std::size_t StreamShard::bytes_of(const StreamCommand& command) {
  std::size_t bytes = kCommandBytes;
  const auto* append = std::get_if<AppendCommand>(&command);
  if (append == nullptr) return bytes;
  for (const NewBatch& batch : append->batches) bytes += kCommandBytes + batch.bytes.size();
  for (const NewRecord& record : append->records) bytes += record_bytes(record);
  return bytes;
}

/// Checks for errors that would spoil the whole batch, with the records of other calls in it.
Status StreamShard::check_record(const StreamInfo& stream, PartitionNumber partition,
                                 TimestampMs timestamp, Instant now) {
  if (partition.value >= stream.partitions()) return no_such_partition(stream, partition);
  const TimestampMs limit = to_timestamp(now + limits::kTimestampAheadMax);
  if (timestamp <= limit) return {};
  return Error{
      Errc::invalid_argument,
      fmt::format("timestamp {} ms lies in the future; the limit is {} ms, {} ahead of "
                  "the broker",
                  timestamp.value, limit.value, format_duration(limits::kTimestampAheadMax))};
}

void StreamShard::append_records(const StreamInfo& stream, AppendCommand& command, Instant now) {
  std::map<PartitionNumber, BatchMaker> makers;
  AppendCommand made;
  made.stream = command.stream;
  const PartitionNumber any{next_spread_++ % stream.partitions()};
  for (std::size_t place = 0; place < command.records.size(); ++place) {
    const NewRecord& record = command.records[place];
    PartitionNumber partition = any;
    if (record.key.has_value()) {
      partition = PartitionNumber{partition_of(*record.key, stream.partitions())};
    }
    partition = record.partition.value_or(partition);
    const TimestampMs timestamp = record.timestamp.value_or(to_timestamp(now));
    command.record_outcomes[place].partition = partition;
    if (Status good = check_record(stream, partition, timestamp, now); !good.has_value()) {
      command.record_outcomes[place].error = std::move(good).error();
      ++stats_.refused;
      continue;
    }
    auto& maker =
        makers.try_emplace(partition, partition, stream.settings.batch_bytes_max).first->second;
    std::vector<RecordHeader> headers;
    headers.reserve(record.headers.size());
    for (const auto& [name, value] : record.headers) headers.push_back({name, value});
    const Status added = maker.add(
        {.key = record.key, .value = record.value, .headers = headers, .timestamp = timestamp},
        place, made);
    if (added.has_value()) continue;
    ++stats_.refused;
    command.record_outcomes[place].error =
        Error{Errc::invalid_argument, fmt::format("record {}: {}", place, added.error().text)};
  }
  for (auto& [partition, maker] : makers) static_cast<void>(maker.finish(made));
  made.outcomes.resize(made.batches.size());
  append_batches(stream, made, now);
  for (const auto& [partition, maker] : makers) maker.tell(made, command.record_outcomes);
}

}  // namespace baton
