#include "sdk/stream/record_codec.h"

#include <chrono>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/crc32c.h"
#include "core/stream/batch_layout.h"
#include "core/stream/big_endian.h"
#include "core/stream/records.h"
#include "sdk/base/errors.h"

namespace baton::client {
namespace {

std::optional<std::string> owned(const std::optional<std::string_view>& view) {
  if (!view) return std::nullopt;
  return std::string(*view);
}

Record make_record(RecordView& view, PartitionNumber partition) {
  Record record{.partition = partition,
                .offset = view.offset,
                .timestamp = RecordTime(std::chrono::milliseconds(view.timestamp.value)),
                .key = owned(view.key),
                .value = owned(view.value)};
  record.headers.reserve(view.headers.size());
  while (auto header = view.headers.next()) {
    record.headers.push_back({.name = std::string(header->name), .value = owned(header->value)});
  }
  return record;
}

bool counts(const RecordView& view, ReadFloor& floor) {
  if (view.offset < floor.offset) return false;
  if (!floor.time) return true;
  if (view.timestamp.value < floor.time->time_since_epoch().count()) return false;
  floor.time.reset();
  return true;
}

Status decode_batch(const BatchView& batch, PartitionNumber partition, ReadFloor& floor,
                    std::vector<Record>& out) {
  if (batch.header().next_offset() <= floor.offset) return {};
  BATON_TRY_STATUS(batch.check_crc());
  BATON_TRY(RecordReader reader, RecordReader::open(batch));
  RecordView view;
  while (true) {
    BATON_TRY(const bool found, reader.next(view));
    if (!found) return {};
    if (counts(view, floor)) out.push_back(make_record(view, partition));
  }
}

}  // namespace

Result<std::vector<Record>> decode_batches(std::string_view bytes, PartitionNumber partition,
                                           ReadFloor& floor) {
  std::vector<Record> records;
  while (!bytes.empty()) {
    const auto batch = BatchView::parse(bytes);
    if (!batch) return batch.error();
    const auto status = decode_batch(*batch, partition, floor, records);
    if (!status) return status.error();
    bytes.remove_prefix(batch->bytes().size());
  }
  return records;
}

void stamp_batch(std::string& batch, const ProducerStamp& stamp) {
  BATON_ASSERT(batch.size() >= kBatchHeaderBytes);
  namespace at = batch_layout;
  store_big(batch.data() + at::kProducerId, stamp.id.value);
  store_big(batch.data() + at::kProducerEpoch, stamp.epoch.value);
  store_big(batch.data() + at::kSequence, stamp.sequence.value);
  store_big(batch.data() + at::kCrc, crc32c(std::string_view(batch).substr(at::kAttributes)));
}

}  // namespace baton::client
