#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <baton/result.h>
#include <baton/stream.h>

#include "core/stream/types.h"
#include "sdk/stream/batch_accumulator.h"

namespace baton::client {

/// Closed batches on their way to the broker and back: which may be sent, under which sequence
/// number, and what an answer means. Pure. Not thread-safe.
///
/// Each partition's batches stay in order until their results are known, so that after a broken
/// session they can be sent again as they were. A batch that the broker refuses leaves a hole in
/// its partition's sequence, and the ones behind it come back as sequence_gap. Then the window
/// drains: it sends only what may have been stored already (its fate must be known under the old
/// epoch), and when nothing is in flight any more it asks for a new epoch and begins at 0.
/// Renumbering the rest within the old epoch would be simpler but wrong: a copy of one of them that
/// the broker still has from a broken session could fill the hole.
///
/// Invariant: at most kProducerBatchesRemembered batches of a partition are in flight or of unknown
/// fate, so that the broker still remembers each of them when it is sent again.
class AppendWindow {
 public:
  enum class Phase : std::uint8_t {
    open,      // Sends.
    draining,  // Waits for the answers that are still out.
    resting,   // Drained; resumed after a while: the broker could not store a batch.
    asking,    // Drained; waits for a new epoch.
  };
  /// A batch whose result is known.
  struct Settled {
    PendingBatchPointer batch;
    Offset offset = kNoOffset;  // Of its first record.
    bool duplicate = false;
    std::optional<Error> error{};
  };
  struct Identity {
    ProducerId id;
    ProducerEpoch epoch;
  };

  AppendWindow(std::uint32_t partitions, std::optional<Identity> identity);

  void add(PendingBatchPointer batch);
  /// Whether a batch of this partition would be sent at once.
  [[nodiscard]] bool may_send(PartitionNumber partition) const;
  /// The batches of the next frame, now in flight; empty when none may be sent.
  std::span<PendingBatch* const> next_frame(std::size_t bytes_max);

  /// Takes the broker's answer to the oldest frame. Fails, and changes nothing, when it cannot be
  /// one: the caller then breaks the session.
  Result<std::vector<Settled>> answered(std::span<const AppendResult> results);
  /// Batches in flight may or may not have been stored.
  void session_broke();
  /// Returns every batch, without a result.
  std::vector<PendingBatchPointer> clear();

  [[nodiscard]] Phase phase() const { return phase_; }
  /// After resting.
  void resume();
  /// After asking.
  void begin_epoch(const Identity& identity);

  /// Set when another producer has taken the name: this one is finished.
  [[nodiscard]] const std::optional<Error>& fenced() const { return fenced_; }
  [[nodiscard]] bool empty() const { return batches_ == 0; }
  [[nodiscard]] std::size_t frames_in_flight() const { return frames_.size(); }
  [[nodiscard]] std::uint64_t resent() const { return resent_; }

 private:
  struct Partition {
    std::deque<PendingBatchPointer> batches;
    std::size_t outstanding = 0;  // In flight or of unknown fate.
    std::int32_t next_sequence = 0;
    Offset offset_min{};  // On this session: lowest offset that the next batch can have.
  };
  using Frame = std::vector<PendingBatch*>;

  [[nodiscard]] PendingBatch* next_of(const Partition& partition) const;
  void send(Partition& partition, PendingBatch& batch);
  [[nodiscard]] Partition& at(PartitionNumber partition) { return partitions_[partition.value]; }
  void refresh(PartitionNumber partition);
  void refresh_all();
  [[nodiscard]] Status check(const Frame& frame, std::span<const AppendResult> results) const;
  void settle(PendingBatch& batch, const AppendResult& result, std::vector<Settled>& settled);
  bool takes_again(PendingBatch& batch, const AppendResult& result);
  void drain(bool new_epoch);
  void end_drain();
  PendingBatchPointer take(PendingBatch& batch);
  void put_rejected_back(bool forget_stamps);

  std::vector<Partition> partitions_;
  std::optional<Identity> identity_;
  std::set<PartitionNumber> ready_;  // Partitions that have something to send.
  PartitionNumber turn_{};           // The partition that sends first next time.
  std::deque<Frame> frames_;
  std::size_t batches_ = 0;
  std::size_t outstanding_ = 0;
  Phase phase_ = Phase::open;
  bool wants_epoch_ = false;
  std::optional<Error> fenced_;
  std::uint64_t resent_ = 0;
};

}  // namespace baton::client
