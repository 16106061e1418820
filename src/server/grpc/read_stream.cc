#include "server/grpc/read_stream.h"

#include <algorithm>
#include <utility>

#include "server/grpc/api_limits.h"
#include "server/grpc/status.h"
#include "server/grpc/wire_fields.h"

namespace baton {
namespace {

constexpr unsigned kRecordsField = 2;
// What all Read calls that begin a piece at the same time share, and the least for each.
constexpr std::size_t kSharedBytes = 32 * limits::kMiB;
constexpr std::size_t kChunkBytesMin = 32 * limits::kKiB;

std::string encode_response(const Chunk& chunk) {
  std::string frame;
  frame.reserve(chunk.batches.size() + chunk.records.size() + 64);
  if (!chunk.batches.empty()) append_blob(frame, 1, chunk.batches);
  frame += chunk.records;
  append_number(frame, 3, static_cast<std::uint64_t>(chunk.next.value));
  append_number(frame, 4, static_cast<std::uint64_t>(chunk.end.value));
  return frame;
}

/// Damage of what is stored is no fault of the request.
grpc::Status read_failure(const Error& error) {
  grpc::Status status = to_status(error);
  if (error.code != Errc::malformed) return status;
  return {grpc::StatusCode::DATA_LOSS, status.error_message(), status.error_details()};
}

}  // namespace

Result<Offset> resolve(const ReadFrom& from, const PartitionReader& reader) {
  switch (from.place) {
    case ReadFrom::Place::first: return reader.first();
    case ReadFrom::Place::next: return reader.next();
    case ReadFrom::Place::last: {
      const Offset next = reader.next();
      return next > reader.first() ? Offset{next.value - 1} : next;
    }
    case ReadFrom::Place::offset: return from.offset;
    case ReadFrom::Place::time: return reader.offset_for_time(from.time);
  }
  return reader.first();
}

void ReadStream::start(std::shared_ptr<StreamPartition> partition) {
  partition_ = std::move(partition);
  {
    const std::lock_guard lock(mutex_);
    reader_ = std::make_unique<PartitionReader>(partition_->reader());
    reading_ahead_ = true;
  }
  post_read();
}

std::size_t ReadStream::chunk_bytes() const {
  const std::size_t open =
      std::max(state_->counters.reads_open.load(std::memory_order_relaxed), std::size_t{1});
  return std::clamp(kSharedBytes / open, kChunkBytesMin, limits::kChunkBytes);
}

void ReadStream::post_read() {
  state_->background.post([stream = self()] { stream->read(); });
}

void ReadStream::wake() { post_read(); }

void ReadStream::read() {
  while (true) {
    if (is_ending()) return reader_->release();
    if (partition_->closed()) {
      return end(to_status({Errc::stream_not_found, "the stream was deleted"}));
    }
    if (!offset_.has_value()) {
      const Result<Offset> from = resolve(wanted_.from, *reader_);
      if (!from.has_value()) return end(read_failure(from.error()));
      offset_ = *from;
    }
    const Offset at = offset_.value_or(Offset{0});
    const std::uint64_t left = wanted_.records_max == 0 ? 0 : wanted_.records_max - records_;
    Result<Chunk> chunk = read_chunk(*reader_, {.from = at,
                                                .bytes_max = chunk_bytes(),
                                                .batches_max = limits::kChunkBatches,
                                                .records_max = left,
                                                .format = wanted_.format,
                                                .records_field = kRecordsField});
    if (!take_chunk(std::move(chunk))) return;
  }
}

bool ReadStream::take_chunk(Result<Chunk> chunk) {
  if (!chunk.has_value()) {
    reader_->release();
    end(read_failure(chunk.error()));
    return false;
  }
  if (chunk->empty()) {
    reader_->release();
    if (!wanted_.follow) {
      end(grpc::Status::OK);
      return false;
    }
    // Stays "reading ahead": the waiter goes on with it.
    return !partition_->wait(offset_.value_or(Offset{0}), std::weak_ptr<PartitionWaiter>(self()));
  }
  offset_ = chunk->next;
  records_ += chunk->record_count;
  const bool enough = wanted_.records_max != 0 && records_ >= wanted_.records_max;
  {
    const std::lock_guard lock(mutex_);
    ready_ = *std::move(chunk);
    reading_ahead_ = false;
    if (enough) set_end(grpc::Status::OK);
  }
  pump();
  // The client is slow, or has all it wanted: retention need not wait for it.
  const std::lock_guard lock(mutex_);
  if (!reading_ahead_) reader_->release();
  return false;
}

std::string ReadStream::take_output(Lock& lock) {
  const Chunk chunk = std::exchange(ready_, std::nullopt).value_or(Chunk{});
  const bool again = !ending() && !reading_ahead_;
  if (again) reading_ahead_ = true;
  lock.unlock();
  if (again) post_read();
  std::string frame = encode_response(chunk);
  lock.lock();
  return frame;
}

}  // namespace baton
