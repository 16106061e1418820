#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/stream/types.h"
#include "server/grpc/api_state.h"
#include "server/grpc/chunk.h"
#include "server/grpc/stream.h"
#include "server/shard/stream_partition.h"

namespace baton {

/// Where a reader begins.
struct ReadFrom {
  enum class Place : std::uint8_t { first, last, next, offset, time };
  Place place = Place::first;
  Offset offset;
  TimestampMs time;
};
/// The offset that `from` names in a partition. Reads the disk for a time.
Result<Offset> resolve(const ReadFrom& from, const PartitionReader& reader);

/// A Read call: one partition, from an offset on, as fast as the client takes it. A background
/// thread reads one piece ahead of the write under way.
///
/// Owned and locked as every Stream (see there).
class ReadStream final : public Stream, public PartitionWaiter {
 public:
  struct Wanted {
    ReadFrom from;
    std::uint64_t records_max = 0;  // 0 = no limit.
    bool follow = false;
    ChunkFormat format = ChunkFormat::batches;
  };

  // Read calls of a server that are open at the same time.
  static constexpr std::size_t kOpenMax = 1000;

  ReadStream(std::shared_ptr<ApiState> state, Wanted wanted)
      : state_(std::move(state)),
        wanted_(wanted),
        crowded_(state_->counters.reads_open.fetch_add(1) >= kOpenMax) {}
  ReadStream(const ReadStream&) = delete;
  ReadStream& operator=(const ReadStream&) = delete;
  ~ReadStream() override { state_->counters.reads_open.fetch_sub(1); }

  /// There are too many already.
  [[nodiscard]] bool crowded() const { return crowded_; }

  /// Begins to read. Called once.
  void start(std::shared_ptr<StreamPartition> partition);

  void wake() override;

 private:
  void take(grpc::ByteBuffer& /*request*/) override {}
  [[nodiscard]] bool has_room() const override { return false; }
  [[nodiscard]] bool has_output() const override { return ready_.has_value(); }
  std::string take_output(Lock& lock) override;
  [[nodiscard]] bool settled() const override { return !ready_.has_value(); }

  /// What to read at once: less when many read, for a client that never takes what it asked for
  /// keeps two such pieces in our memory.
  [[nodiscard]] std::size_t chunk_bytes() const;
  void post_read();
  void read();
  /// Looks what a read brought; true when another one is to be made at once.
  bool take_chunk(Result<Chunk> chunk);
  std::shared_ptr<ReadStream> self() {
    return std::static_pointer_cast<ReadStream>(shared_from_this());
  }

  std::shared_ptr<ApiState> state_;
  Wanted wanted_;
  bool crowded_;
  std::shared_ptr<StreamPartition> partition_;  // Constant once started.

  // Only touched by the one read under way, or with the mutex held while there is none.
  std::unique_ptr<PartitionReader> reader_;
  std::optional<Offset> offset_;
  std::uint64_t records_ = 0;

  // Under the mutex.
  bool reading_ahead_ = false;
  std::optional<Chunk> ready_;
};

}  // namespace baton
