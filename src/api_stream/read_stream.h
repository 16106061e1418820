#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api_base/api_state.h"
#include "api_base/stream.h"
#include "api_stream/chunk.h"
#include "broker/stream_partition.h"
#include "stream/types.h"

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

  ReadStream(std::shared_ptr<ApiState> state, Wanted wanted)
      : state_(std::move(state)), wanted_(wanted) {}

  /// Begins to read. Called once.
  void start(std::shared_ptr<StreamPartition> partition);

  void wake() override;

 private:
  void take(grpc::ByteBuffer& /*request*/) override {}
  [[nodiscard]] bool has_room() const override { return false; }
  [[nodiscard]] bool has_output() const override { return ready_.has_value(); }
  std::string take_output(Lock& lock) override;
  [[nodiscard]] bool settled() const override { return !ready_.has_value(); }

  void post_read();
  void read();
  /// Looks what a read brought; true when another one is to be made at once.
  bool take_chunk(Result<Chunk> chunk);
  std::shared_ptr<ReadStream> self() {
    return std::static_pointer_cast<ReadStream>(shared_from_this());
  }

  std::shared_ptr<ApiState> state_;
  Wanted wanted_;
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
