#include "server/session/chunk.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "core/stream/record_batch.h"
#include "core/stream/records.h"

namespace baton {
namespace {

/// Adds the wanted records of `batch`, decoded; returns where to read next. A failure leaves the
/// chunk unchanged: half a batch would be delivered again with the rest of it.
Result<Offset> append_records(Chunk& chunk, const BatchView& batch, const ChunkWanted& wanted) {
  BATON_TRY(RecordReader records, RecordReader::open(batch));
  std::string out;
  std::uint64_t count = chunk.record_count;
  Offset next = batch.header().next_offset();
  RecordView record;
  while (true) {
    BATON_TRY(const bool more, records.next(record));
    if (!more) break;
    if (record.offset < wanted.from) continue;
    if (wanted.records_max != 0 && count >= wanted.records_max) {
      next = record.offset;
      break;
    }
    ++count;
    wanted.encode_record(out, record);
  }
  chunk.record_count = count;
  if (chunk.records.empty()) {
    chunk.records = std::move(out);
  } else {
    chunk.records += out;
  }
  return next;
}

/// Adds the first batch of `bytes`; returns its size. A failure leaves the chunk unchanged.
Result<std::size_t> append_batch(Chunk& chunk, std::string_view bytes, const ChunkWanted& wanted) {
  BATON_TRY(const BatchView batch, BatchView::parse(bytes));
  Offset next = batch.header().next_offset();
  if (wanted.encode_record != nullptr) {
    BATON_TRY(next, append_records(chunk, batch, wanted));
  } else {
    const Offset first = std::max(wanted.from, batch.header().base_offset);
    chunk.record_count += static_cast<std::uint64_t>(next.value - first.value);
  }
  ++chunk.batch_count;
  chunk.bytes += batch.bytes().size();
  chunk.next = next;
  return batch.bytes().size();
}

/// A chunk may wait for a slow client: bytes that were read but not used must not stay in memory
/// with it.
void keep_batches(Chunk& chunk, std::string read) {
  if (chunk.bytes < read.capacity() / 2) {
    chunk.batches.assign(read, 0, chunk.bytes);
  } else {
    chunk.batches = std::move(read);
    chunk.batches.resize(chunk.bytes);
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
    // Compressed batches can be much larger than they were on the disk.
    if (!chunk.empty() && chunk.records.size() >= wanted.bytes_max) break;
    const Result<std::size_t> added = append_batch(chunk, rest, wanted);
    if (!added.has_value()) {
      // Batches before a damaged one are delivered; the next read begins with the damaged one.
      if (chunk.empty()) return added.error();
      break;
    }
    rest.remove_prefix(*added);
  }
  if (wanted.encode_record == nullptr) keep_batches(chunk, std::move(read.bytes));
  return chunk;
}

}  // namespace baton
