#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "core/group/seat.h"
#include "server/session/chunk.h"
#include "server/session/leased_session.h"
#include "server/session/read_from.h"
#include "server/shard/stream_commands.h"

/// The messages between a client and a SubscriptionSession.
namespace baton::subscription {

/// The batches and bytes that may still be delivered.
struct Credit {
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;

  /// Whether a batch may be delivered: a batch needs both.
  [[nodiscard]] bool allows_more() const { return batches > 0 && bytes > 0; }
  void add(const Credit& more) {
    batches += more.batches;
    bytes += more.bytes;
  }
  /// Takes what is left, up to `wanted`.
  Credit take(const Credit& wanted) {
    const Credit taken{.batches = std::min(batches, wanted.batches),
                       .bytes = std::min(bytes, wanted.bytes)};
    batches -= taken.batches;
    bytes -= taken.bytes;
    return taken;
  }
};

/// The checked request for a subscription.
struct Wanted {
  SubscriptionId id;
  SubscribeCommand command;
  ReadFrom from;
  Credit credit;
  RecordEncoder encode_record = nullptr;
  bool ask_offset = false;
  bool skip_gaps = false;
};

// The contents of one request; the parts are taken in the order of the Request's fields.

struct Start {
  SubscriptionId id;
  Result<Wanted> wanted;
};
struct MoreCredit {
  SubscriptionId id;
  Credit credit;
};
struct StoreOffset {
  SubscriptionId id;
  PartitionNumber partition;
  std::int64_t offset = 0;
  Generation epoch;
};
struct Reply {
  SubscriptionId id;
  PartitionNumber partition;
  Generation generation;
  std::optional<GroupOffset> offset;
};
struct Request {
  std::optional<std::uint64_t> heartbeat{};
  std::vector<Start> starts{};
  std::vector<MoreCredit> credits{};
  std::vector<StoreOffset> offsets{};
  std::vector<Reply> replies{};
  std::vector<SubscriptionId> unsubscribes{};

  [[nodiscard]] std::size_t items() const {
    return starts.size() + credits.size() + offsets.size() + replies.size() + unsubscribes.size();
  }
  /// Empties the request; the parts keep their memory for the next request.
  void clear();
};

// The contents of an output.

struct Started {
  SubscriptionId id;
  Ticket ticket;
  std::vector<PartitionNumber> partitions;
};
struct Update {
  SubscriptionId id;
  PartitionNumber partition;
  SeatUpdate seat;
  std::optional<GroupOffset> offset;
};
/// Records of one partition: whole batches, one after the other.
struct Batches {
  SubscriptionId id;
  PartitionNumber partition;
  Generation epoch;
  Chunk chunk;
};
struct OffsetStored {
  SubscriptionId id;
  PartitionNumber partition;
  std::int64_t offset = 0;
  std::optional<Error> error;
};
struct Closed {
  SubscriptionId id;
  std::optional<Error> reason;
};
using Said = std::variant<Started, Update, Batches, OffsetStored, Closed, HeartbeatAnswer>;
/// In the order of sending. Kinds never go back within an output: a client may take them kind by
/// kind.
using Output = std::vector<Said>;

/// The items that wait to be written to the client. Pure; not thread-safe.
class OutputQueue {
 public:
  void say(Said said);
  /// Adds a batch of `feed`; `cost` is what it took of its subscription's credit.
  void say_batch(const void* feed, Batches batches, Credit cost);
  /// Overtakes batches, of which a slow connection may have many to carry, but nothing about a
  /// seat: a client whose lease is renewed has got everything that was said before.
  void say_ahead_of_batches(Said said);
  /// Drops the batches of `feed`; returns what they would have cost.
  Credit drop_batches(const void* feed);
  /// Moves as much as fits into one output to the end of `output`.
  void take(Output& output);

  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  /// The approximate bytes of all items in memory and on the wire.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Piece {
    Said said;
    std::size_t bytes = 0;
    const void* feed = nullptr;  // Of a batch.
    Credit cost{};
  };

  std::deque<Piece> pieces_;
  std::size_t bytes_ = 0;
};

}  // namespace baton::subscription
