#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include <baton/result.h>
#include <baton/stream.h>
#include <baton/stream_consumer.h>

#include "sdk/stream/record_codec.h"

namespace baton::client {

/// How much a subscription may still receive, or gets back.
struct CreditAmount {
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;

  bool operator==(const CreditAmount&) const = default;
};

/// A delivery, not decoded yet.
struct RawBatch {
  std::uint64_t subscription = 0;
  Epoch epoch{};
  std::string bytes{};
  Offset first_offset = kNoOffset;
  Offset next_offset{};
  Offset end_offset{};
  CreditAmount cost{};
};

/// A task for a worker.
struct SeatTask {
  enum class Kind : std::uint8_t { activate, handle, step_down };
  Kind kind = Kind::handle;
  PartitionNumber partition{};
  Epoch epoch{};
  Offset offset = kNoOffset;  // For activate: where delivery begins. ask_offset changes it.
  RawBatch batch{};           // For handle.
  ReadFloor floor{};  // For handle: lower offsets were handed out before. Decoding changes it.
  std::uint64_t records = 0;  // How many records were handled.
  bool failed = false;        // The handler threw: nothing was handled.
  bool stopped = false;       // The handler wanted no more: batch.next_offset says how far it came.
};

/// What one consumer holds and owes on one partition: whether it has the seat, which batches wait
/// for a handler, which offset has to be stored, which step-down has to be answered. Pure: time is
/// an argument. Not thread-safe.
///
/// One task at a time, in order. A step-down lets the running handler finish, drops the batches
/// behind it, tells the application, stores the offset, and answers once that is confirmed. The
/// offset is stored even when nothing was handled: the group may have none, and the successor would
/// begin where *it* was told to, past what has come meanwhile. For the same reason it is stored
/// when the seat is taken.
///
/// Invariant: a store goes out only under the epoch in which its records were handled, and at most
/// one is unanswered.
class PartitionSeat {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Rules {
    bool single_active = false;
    bool has_group = false;
    bool ask_offset = false;
    bool has_callbacks = false;  // on_active or on_step_down is set.
    OffsetStoring storing{};
  };
  struct Update {
    bool active = false;
    bool stepping_down = false;
    std::uint64_t generation = 0;
    std::optional<Offset> offset{};
  };
  struct Store {
    Epoch epoch{};
    Offset offset{};
    bool operator==(const Store&) const = default;
  };
  struct Reply {
    std::uint64_t generation = 0;
    std::optional<Offset> offset{};
    bool operator==(const Reply&) const = default;
  };

  /// `floor`: where the records that count begin, as far as known.
  PartitionSeat(PartitionNumber partition, const Rules& rules, const ReadFloor& floor)
      : partition_(partition), rules_(rules), floor_(floor) {}

  // Messages from the broker.

  /// The subscription exists. Without single_active that gives us the seat.
  void started(std::uint64_t subscription);
  void update(const Update& update);
  /// False if the seat is not ours, or no longer: the batch is dropped and its credit returned.
  bool deliver(RawBatch batch);
  /// False if no store waits for this answer.
  bool stored(Offset offset, const std::optional<Error>& error);
  /// The connection broke, or the subscription was closed.
  void lost();

  // Called by the workers.

  [[nodiscard]] bool has_task() const;
  SeatTask begin();
  void finish(const SeatTask& task, Time now);
  /// Stores an offset that is due by time.
  void tick(Time now);

  // Called by the application.

  /// Returns a ticket for store_result(). Fails with stale_epoch when `position` is another seat's.
  Result<std::uint64_t> want_store(const StreamPosition& position);
  /// How that store, or a later one, ended; nullopt while it is in progress.
  [[nodiscard]] std::optional<Status> store_result(std::uint64_t ticket) const;
  /// Starts no more handlers; stores what is handled.
  void stop();
  /// After stop(): no handler runs, and nothing is owed.
  [[nodiscard]] bool is_done() const;

  // What has to be sent.

  std::optional<Store> next_store();
  std::optional<Reply> next_reply();
  CreditAmount take_credit();

  [[nodiscard]] bool is_ours() const { return seat_ != Seat::none; }
  [[nodiscard]] PartitionNumber partition() const { return partition_; }
  /// Where to continue reading: after the last batch handed out.
  [[nodiscard]] const ReadFloor& floor() const { return floor_; }

 private:
  enum class Seat : std::uint8_t { none, active, stepping_down };

  void take_seat(const Update& update);
  void activated(const SeatTask& task);
  void handled(const SeatTask& task, Time now);
  void step_down(std::uint64_t generation);
  void leave_seat(Errc why);
  void begin_nothing_more();
  void drop_queue();
  void want(Offset offset);
  /// Once the last task is done: takes the steps that leaving the seat requires.
  void settle();
  [[nodiscard]] bool is_storing() const { return wanted_ || outstanding_; }

  const PartitionNumber partition_;
  const Rules rules_;
  std::uint64_t subscription_ = 0;
  Seat seat_ = Seat::none;
  Epoch epoch_{};
  std::deque<RawBatch> queue_;
  ReadFloor floor_;
  Offset handled_ = kNoOffset;  // After the last batch whose handler returned.
  bool running_ = false;
  bool stopping_ = false;
  bool halted_ = false;  // A handler threw, or wanted no more.

  // Callbacks owed. `told_` keeps them alternating.
  bool activation_due_ = false;
  bool step_down_due_ = false;
  bool told_ = false;
  Offset begins_at_ = kNoOffset;

  // A step-down to answer.
  std::uint64_t step_generation_ = 0;
  bool settled_ = false;  // The last offset was taken care of.
  std::optional<Reply> asked_;

  // Storing.
  std::optional<Offset> wanted_;
  std::optional<Offset> outstanding_;
  std::optional<Offset> stored_;      // Confirmed under this epoch.
  std::uint64_t stored_ignored_ = 0;  // Answers still to come to stores of an older epoch.
  std::uint64_t wanted_ticket_ = 0;
  std::uint64_t outstanding_ticket_ = 0;
  std::uint64_t done_ticket_ = 0;
  std::optional<Error> done_error_;
  std::uint64_t records_unstored_ = 0;
  Time stored_at_{};

  CreditAmount credit_;
};

}  // namespace baton::client
