#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/rows.h"
#include "core/queue/dedup.h"
#include "core/queue/message.h"
#include "core/queue/settings.h"
#include "core/queue/types.h"

/// Keys and values of the queues' rows in the checkpoint. Numbers in keys are big-endian, so that
/// the order of bytes is the order of numbers. docs/storage-format.md draws them.
namespace baton {

namespace tables {
inline constexpr Table kMessages{0};
inline constexpr Table kKeys{1};
inline constexpr Table kIds{2};
inline constexpr Table kLeases{3};
inline constexpr Table kLeaseExpiry{4};
inline constexpr Table kDelayed{5};
inline constexpr Table kDedup{6};
inline constexpr Table kQueues{7};
inline constexpr Table kState{8};
inline constexpr Table kOutgoing{9};
inline constexpr Table kReceived{10};

inline constexpr std::array<TableName, 11> kAll{{
    {kMessages, "messages"},
    {kKeys, "keys"},
    {kIds, "ids"},
    {kLeases, "leases"},
    {kLeaseExpiry, "lease_expiry"},
    {kDelayed, "delayed"},
    {kDedup, "dedup"},
    {kQueues, "queues"},
    {kState, "state"},
    {kOutgoing, "outgoing"},
    {kReceived, "received"},
}};
}  // namespace tables

/// When and why a message last failed. Shared, because deltas hold it too.
struct FailureNote {
  Instant first;
  Instant last;
  std::string reason;
  bool operator==(const FailureNote&) const = default;
};
using FailureRef = std::shared_ptr<const FailureNote>;

// Keys.
std::string queue_prefix(QueueId queue);
/// The first key after every key of `prefix`'s rows.
std::string prefix_end(std::string_view prefix);
std::string message_key(QueueId queue, std::string_view fairness_key, Sequence sequence);
std::string fairness_key_row(QueueId queue, std::string_view fairness_key);
/// queue_id : 16 bytes, as in `ids`, `leases`, `dedup` and `outgoing`.
std::string queue_and_id(QueueId queue, std::string_view sixteen_bytes);
/// time : queue_id : msg_id, as in `lease_expiry` and `delayed`.
std::string time_key(Instant at, QueueId queue, Uuid id);
std::string received_key(std::uint64_t from_shard, TransferId transfer);

struct MessageKey {
  QueueId queue;
  std::string fairness_key;
  Sequence sequence;
};
Result<MessageKey> decode_message_key(std::string_view key);
struct TimeKey {
  Instant at;
  QueueId queue;
  Uuid id;
};
Result<TimeKey> decode_time_key(std::string_view key);
struct QueueAndId {
  QueueId queue;
  Uuid id;
};
Result<QueueAndId> decode_queue_and_id(std::string_view key);

// Values.
/// A row of `messages`, `delayed` and `outgoing`.
struct MessageRow {
  Sequence sequence;  // Of a delayed message: given when enqueued, for a purge to know its age.
  std::uint32_t attempts = 0;
  FailureRef failure;
  std::string to;  // Of an outgoing message: the queue it goes to, and the name of the transfer.
  std::optional<TransferId> transfer{};
  MessageRef message;
};
std::string encode_row(const MessageRow& row);
Result<MessageRow> decode_message_row(std::string_view value);

struct KeyRow {
  Sequence head;  // No ready message of the key has a lower sequence.
  std::uint64_t count = 0;
};
std::string encode_row(const KeyRow& row);
Result<KeyRow> decode_key_row(std::string_view value);
Result<std::pair<QueueId, std::string>> decode_fairness_key_row(std::string_view key);

struct LeaseRow {
  std::string consumer_id;
  Instant deadline;
  LeaseToken token;
  std::uint32_t bytes = 0;
  std::string key;
  Sequence sequence;
};
std::string encode_row(const LeaseRow& row);
Result<LeaseRow> decode_lease_row(std::string_view value);

struct QueueRow {
  QueueId id;
  Sequence next_sequence;
  Sequence purged_before;  // Delayed messages with a lower sequence were purged.
  std::uint64_t bytes = 0;
  std::uint64_t delayed = 0;
  QueueSettings settings;
  bool old = false;  // Whether the row was read from format 1, which is no longer written.
};
std::string encode_row(const QueueRow& row);
Result<QueueRow> decode_queue_row(std::string_view value);

struct DedupRow {
  Uuid id;
  Instant seen;
};
std::string encode_row(const DedupRow& row);
Result<DedupRow> decode_dedup_row(std::string_view value);

/// A row of `ids`: which table and row hold the message.
struct IdRow {
  Table table;
  std::string key;
};
std::string encode_row(const IdRow& row);
Result<IdRow> decode_id_row(std::string_view value);

}  // namespace baton
