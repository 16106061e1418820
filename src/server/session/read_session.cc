#include "server/session/read_session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "server/session/calls.h"
#include "server/session/limits.h"

namespace baton {
namespace {

// The bytes that all concurrent Read calls share, and the least for each.
constexpr std::size_t kSharedBytes = 32 * limits::kMiB;
constexpr std::size_t kChunkBytesMin = 32 * limits::kKiB;

}  // namespace

ReadSession::ReadSession(std::shared_ptr<ServerState> state, Wanted wanted)
    : state_(std::move(state)),
      wanted_(wanted),
      crowded_(state_->counters.reads_open.fetch_add(1) >= kOpenMax) {}

ReadSession::~ReadSession() { state_->counters.reads_open.fetch_sub(1); }

void ReadSession::begin(OpenPartitionCommand wanted) {
  if (is_ending()) return;
  if (crowded_) {
    return end(
        Error{Errc::resource_exhausted,
              fmt::format("{} Read calls are open, which is the limit; use Subscribe", kOpenMax)});
  }
  submit(state_->broker, std::move(wanted), Broker::Admission::reserved,
         [session = self()](Command* done) {
           OpenPartitionCommand* const opened = answer_of<OpenPartitionCommand>(done);
           if (opened == nullptr) return session->end(busy());
           if (opened->error.has_value()) return session->end(*opened->error);
           session->start(std::move(opened->opened));
         });
}

void ReadSession::start(std::shared_ptr<StreamPartition> partition) {
  partition_ = std::move(partition);
  {
    const std::lock_guard lock(mutex_);
    reader_ = std::make_unique<PartitionReader>(partition_->reader());
    reading_ahead_ = true;
  }
  post_read();
}

std::size_t ReadSession::chunk_bytes() const {
  const std::size_t open =
      std::max(state_->counters.reads_open.load(std::memory_order_relaxed), std::size_t{1});
  return std::clamp(kSharedBytes / open, kChunkBytesMin, limits::kChunkBytes);
}

void ReadSession::post_read() {
  state_->background.post([session = self()] { session->read(); });
}

void ReadSession::wake() { post_read(); }

void ReadSession::read() {
  while (true) {
    if (is_ending()) return reader_->release();
    if (partition_->closed()) {
      return end(Error{Errc::stream_not_found, "the stream was deleted"});
    }
    if (!offset_.has_value()) {
      const Result<Offset> from = resolve(wanted_.from, *reader_);
      if (!from.has_value()) return end(from.error());
      offset_ = *from;
    }
    const Offset at = offset_.value_or(Offset{0});
    const std::uint64_t left = wanted_.records_max == 0 ? 0 : wanted_.records_max - records_;
    Result<Chunk> chunk = read_chunk(*reader_, {.from = at,
                                                .bytes_max = chunk_bytes(),
                                                .batches_max = limits::kChunkBatches,
                                                .records_max = left,
                                                .encode_record = wanted_.encode_record});
    if (!take_chunk(std::move(chunk))) return;
  }
}

bool ReadSession::take_chunk(Result<Chunk> chunk) {
  if (!chunk.has_value()) {
    reader_->release();
    end(chunk.error());
    return false;
  }
  if (chunk->empty()) {
    reader_->release();
    if (!wanted_.follow) {
      end({});
      return false;
    }
    // reading_ahead_ stays set: the waiter continues the read.
    return !partition_->wait(offset_.value_or(Offset{0}), std::weak_ptr<PartitionWaiter>(self()));
  }
  offset_ = chunk->next;
  records_ += chunk->record_count;
  const bool enough = wanted_.records_max != 0 && records_ >= wanted_.records_max;
  {
    const std::lock_guard lock(mutex_);
    ready_ = *std::move(chunk);
    reading_ahead_ = false;
    if (enough) set_end({});
  }
  pump();
  // The client is slow, or has everything it wanted: retention need not wait for it.
  const std::lock_guard lock(mutex_);
  if (!reading_ahead_) reader_->release();
  return false;
}

Chunk ReadSession::take_output(Lock& lock) {
  Chunk chunk = std::exchange(ready_, std::nullopt).value_or(Chunk{});
  const bool again = !ending() && !reading_ahead_;
  if (again) reading_ahead_ = true;
  lock.unlock();
  if (again) post_read();
  return chunk;
}

}  // namespace baton
