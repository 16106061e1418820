#include "api/chunk.h"

#include <utility>

#include "api/wire_fields.h"
#include "base/assert.h"
#include "stream/record_batch.h"
#include "stream/records.h"

namespace baton {
namespace {

std::string encode_header(const RecordHeader& header) {
  std::string out;
  append_blob(out, 1, header.name);
  if (header.value.has_value()) append_blob(out, 2, *header.value);
  return out;
}

/// A ReadRecord.
void append_record(std::string& out, unsigned field, RecordView record) {
  std::string body;
  body.reserve(32 + (record.key ? record.key->size() : 0) +
               (record.value ? record.value->size() : 0));
  append_number(body, 1, static_cast<std::uint64_t>(record.offset.value));
  append_number(body, 2, static_cast<std::uint64_t>(record.timestamp.value));
  if (record.key.has_value()) append_blob(body, 3, *record.key);
  if (record.value.has_value()) append_blob(body, 4, *record.value);
  while (const auto header = record.headers.next()) append_blob(body, 5, encode_header(*header));
  append_blob(out, field, body);
}

/// Adds the records of `batch` that are wanted, decoded.
Status append_records(Chunk& chunk, const BatchView& batch, const ChunkWanted& wanted) {
  BATON_TRY(RecordReader records, RecordReader::open(batch));
  RecordView record;
  while (true) {
    BATON_TRY(const bool more, records.next(record));
    if (!more) return {};
    const bool enough = wanted.records_max != 0 && chunk.record_count >= wanted.records_max;
    if (record.offset < wanted.from) continue;
    if (enough) {
      chunk.next = record.offset;
      return {};
    }
    ++chunk.record_count;
    append_record(chunk.records, wanted.records_field, record);
  }
}

}  // namespace

Result<Chunk> read_chunk(PartitionReader& reader, const ChunkWanted& wanted) {
  Chunk chunk;
  chunk.end = reader.next();
  BATON_TRY(ReadBatches read, reader.read(wanted.from, wanted.bytes_max));
  chunk.next = wanted.from;
  std::string_view rest = read.bytes;
  while (!rest.empty() && chunk.batch_count < wanted.batches_max) {
    if (wanted.records_max != 0 && chunk.record_count >= wanted.records_max) break;
    BATON_TRY(const BatchView batch, BatchView::parse(rest));
    rest.remove_prefix(batch.bytes().size());
    ++chunk.batch_count;
    chunk.bytes += batch.bytes().size();
    chunk.next = batch.header().next_offset();
    if (wanted.format == ChunkFormat::records) {
      BATON_TRY_STATUS(append_records(chunk, batch, wanted));
    } else {
      const Offset first = std::max(wanted.from, batch.header().base_offset);
      chunk.record_count += static_cast<std::uint64_t>(chunk.next.value - first.value);
    }
  }
  if (wanted.format == ChunkFormat::batches) {
    chunk.batches = std::move(read.bytes);
    chunk.batches.resize(chunk.bytes);
  }
  return chunk;
}

}  // namespace baton
