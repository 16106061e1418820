#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/stream/types.h"
#include "server/session/chunk.h"
#include "server/session/read_from.h"
#include "server/session/server_state.h"
#include "server/session/session.h"
#include "server/shard/stream_commands.h"
#include "server/shard/stream_partition.h"

namespace baton {

/// One partition, from an offset on, as fast as the client takes it. A background thread reads one
/// chunk ahead of the write under way.
///
/// Owned and locked like every Session (see there).
class ReadSession final : public Session, public PartitionWaiter {
 public:
  struct Wanted {
    ReadFrom from;
    std::uint64_t records_max = 0;  // 0 = no limit.
    bool follow = false;
    RecordEncoder encode_record = nullptr;
  };

  // The most read sessions of a server that may be open at the same time.
  static constexpr std::size_t kOpenMax = 1000;

  ReadSession(std::shared_ptr<ServerState> state, Wanted wanted);
  ReadSession(const ReadSession&) = delete;
  ReadSession& operator=(const ReadSession&) = delete;
  ~ReadSession() override;

  /// Whether too many are open already.
  [[nodiscard]] bool crowded() const { return crowded_; }

  /// Asks the broker for the partition and reads it; ends with an error if kOpenMax sessions are
  /// open already. Called once.
  void begin(OpenPartitionCommand wanted);
  /// Begins to read. Called once, by begin() or by a test that has a partition.
  void start(std::shared_ptr<StreamPartition> partition);

  void wake() override;

  using Output = Chunk;
  /// The chunk that was read. Called with the lock held, which it releases.
  Output take_output(Lock& lock);

 private:
  [[nodiscard]] bool has_room() const override { return false; }
  [[nodiscard]] bool has_output() const override { return ready_.has_value(); }
  [[nodiscard]] bool settled() const override { return !ready_.has_value(); }

  /// The size of one chunk in bytes. The more sessions read, the smaller a chunk is: a client that
  /// stops reading keeps two chunks in memory.
  [[nodiscard]] std::size_t chunk_bytes() const;
  void post_read();
  void read();
  /// Takes the result of a read. True: read again now.
  bool take_chunk(Result<Chunk> chunk);
  std::shared_ptr<ReadSession> self() {
    return std::static_pointer_cast<ReadSession>(shared_from_this());
  }

  std::shared_ptr<ServerState> state_;
  Wanted wanted_;
  bool crowded_;
  std::shared_ptr<StreamPartition> partition_;  // Constant once started.

  // Only used by the read under way, or with the mutex held while there is none.
  std::unique_ptr<PartitionReader> reader_;
  std::optional<Offset> offset_;
  std::uint64_t records_ = 0;

  // Guarded by the mutex.
  bool reading_ahead_ = false;
  std::optional<Chunk> ready_;
};

}  // namespace baton
