#include "core/queue/rows.h"

#include <utility>

#include "base/bytes.h"

namespace baton {
namespace {

constexpr std::uint8_t kMessageRowFormat = 1;
constexpr std::uint8_t kOutgoingRowFormat = 2;

Error bad_row(std::string_view table) {
  return {Errc::store_corrupt, "a row of the table '" + std::string(table) + "' cannot be read"};
}

Uuid read_id(Decoder& in) {
  const std::string_view raw = in.raw(16);
  return in.ok() ? Uuid::from_raw(raw) : Uuid{};
}

}  // namespace

std::string queue_prefix(QueueId queue) {
  std::string key;
  Encoder(key).big_u64(queue.value);
  return key;
}

std::string prefix_end(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<std::uint8_t>(end.back()) == 0xffU) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<std::uint8_t>(end.back()) + 1U);
  return end;
}

std::string fairness_key_row(QueueId queue, std::string_view fairness_key) {
  std::string key;
  key.reserve(8 + 2 + fairness_key.size() + 8);
  Encoder out(key);
  out.big_u64(queue.value);
  out.big_u16(static_cast<std::uint16_t>(fairness_key.size()));
  out.raw(fairness_key);
  return key;
}

std::string message_key(QueueId queue, std::string_view fairness_key, Sequence sequence) {
  std::string key = fairness_key_row(queue, fairness_key);
  Encoder(key).big_u64(sequence.value);
  return key;
}

std::string queue_and_id(QueueId queue, std::string_view sixteen_bytes) {
  std::string key = queue_prefix(queue);
  key.append(sixteen_bytes);
  return key;
}

std::string time_key(Instant at, QueueId queue, Uuid id) {
  std::string key;
  Encoder out(key);
  out.big_u64(static_cast<std::uint64_t>(at.ns));
  out.big_u64(queue.value);
  out.raw(id.raw());
  return key;
}

std::string received_key(std::uint64_t from_shard, TransferId transfer) {
  std::string key;
  Encoder out(key);
  out.big_u64(from_shard);
  out.big_u64(transfer.boot);
  out.big_u64(transfer.number);
  return key;
}

Result<MessageKey> decode_message_key(std::string_view key) {
  Decoder in(key);
  MessageKey decoded;
  decoded.queue = QueueId{in.big_u64()};
  decoded.fairness_key = in.raw(in.big_u16());
  decoded.sequence = Sequence{in.big_u64()};
  if (!in.finish()) return bad_row("messages");
  return decoded;
}

Result<TimeKey> decode_time_key(std::string_view key) {
  Decoder in(key);
  TimeKey decoded;
  decoded.at = {static_cast<std::int64_t>(in.big_u64())};
  decoded.queue = QueueId{in.big_u64()};
  decoded.id = read_id(in);
  if (!in.finish()) return bad_row("delayed");
  return decoded;
}

Result<QueueAndId> decode_queue_and_id(std::string_view key) {
  Decoder in(key);
  QueueAndId decoded;
  decoded.queue = QueueId{in.big_u64()};
  decoded.id = read_id(in);
  if (!in.finish()) return bad_row("leases");
  return decoded;
}

std::string encode_row(const MessageRow& row) {
  std::string value;
  value.reserve(row.message->bytes().size() + 24);
  Encoder out(value);
  out.u8(row.transfer.has_value() ? kOutgoingRowFormat : kMessageRowFormat);
  out.varint(row.sequence.value);
  out.varint(row.attempts);
  out.u8(row.failure != nullptr ? 1 : 0);
  if (row.failure != nullptr) {
    out.fixed(row.failure->first.ns);
    out.fixed(row.failure->last.ns);
    out.blob(row.failure->reason);
  }
  out.blob(row.to);
  if (row.transfer.has_value()) {
    std::string name;
    Encoder(name).varint(row.transfer->boot);
    Encoder(name).varint(row.transfer->number);
    out.blob(name);
  }
  out.raw(row.message->bytes());
  return value;
}

Result<MessageRow> decode_message_row(std::string_view value) {
  Decoder in(value);
  const std::uint8_t format = in.u8();
  if (format != kMessageRowFormat && format != kOutgoingRowFormat) return bad_row("messages");
  MessageRow row;
  row.sequence = Sequence{in.varint()};
  row.attempts = static_cast<std::uint32_t>(in.varint());
  if (in.u8() != 0) {
    auto note = std::make_shared<FailureNote>();
    note->first = {in.fixed<std::int64_t>()};
    note->last = {in.fixed<std::int64_t>()};
    note->reason = in.blob();
    row.failure = std::move(note);
  }
  row.to = in.blob();
  if (format == kOutgoingRowFormat) {
    Decoder name(in.blob());
    const std::uint64_t boot = name.varint();
    row.transfer = TransferId{.boot = boot, .number = name.varint()};
    if (!name.ok()) return bad_row("outgoing");
  }
  if (!in.ok()) return bad_row("messages");
  auto message = Message::parse(in.rest());
  if (!message.has_value()) return bad_row("messages");
  row.message = *std::move(message);
  return row;
}

std::string encode_row(const KeyRow& row) {
  std::string value;
  Encoder out(value);
  out.varint(row.head.value);
  out.varint(row.count);
  return value;
}

Result<KeyRow> decode_key_row(std::string_view value) {
  Decoder in(value);
  KeyRow row;
  row.head = Sequence{in.varint()};
  row.count = in.varint();
  if (!in.finish()) return bad_row("keys");
  return row;
}

Result<std::pair<QueueId, std::string>> decode_fairness_key_row(std::string_view key) {
  Decoder in(key);
  const QueueId queue{in.big_u64()};
  std::string name{in.raw(in.big_u16())};
  if (!in.finish()) return bad_row("keys");
  return std::pair(queue, std::move(name));
}

std::string encode_row(const LeaseRow& row) {
  std::string value;
  Encoder out(value);
  out.blob(row.consumer_id);
  out.fixed(row.deadline.ns);
  out.varint(row.token.boot);
  out.varint(row.token.number);
  out.varint(row.bytes);
  out.blob(row.key);
  out.varint(row.sequence.value);
  return value;
}

Result<LeaseRow> decode_lease_row(std::string_view value) {
  Decoder in(value);
  LeaseRow row;
  row.consumer_id = in.blob();
  row.deadline = {in.fixed<std::int64_t>()};
  row.token.boot = in.varint();
  row.token.number = in.varint();
  row.bytes = static_cast<std::uint32_t>(in.varint());
  row.key = in.blob();
  row.sequence = Sequence{in.varint()};
  if (!in.finish()) return bad_row("leases");
  return row;
}

std::string encode_row(const QueueRow& row) {
  std::string value;
  Encoder out(value);
  out.varint(row.id.value);
  out.varint(row.next_sequence.value);
  out.varint(row.purged_before.value);
  out.varint(row.bytes);
  out.varint(row.delayed);
  encode(out, row.settings);
  return value;
}

Result<QueueRow> decode_queue_row(std::string_view value) {
  Decoder in(value);
  QueueRow row;
  row.id = QueueId{in.varint()};
  row.next_sequence = Sequence{in.varint()};
  row.purged_before = Sequence{in.varint()};
  row.bytes = in.varint();
  row.delayed = in.varint();
  row.settings = decode_settings(in);
  if (!in.finish()) return bad_row("queues");
  return row;
}

std::string encode_row(const DedupRow& row) {
  std::string value;
  Encoder out(value);
  out.raw(row.id.raw());
  out.fixed(row.seen.ns);
  return value;
}

Result<DedupRow> decode_dedup_row(std::string_view value) {
  Decoder in(value);
  DedupRow row;
  row.id = read_id(in);
  row.seen = {in.fixed<std::int64_t>()};
  if (!in.finish()) return bad_row("dedup");
  return row;
}

std::string encode_row(const IdRow& row) {
  std::string value;
  Encoder out(value);
  out.u8(row.table.value);
  out.raw(row.key);
  return value;
}

Result<IdRow> decode_id_row(std::string_view value) {
  Decoder in(value);
  IdRow row;
  row.table = Table{in.u8()};
  row.key = in.rest();
  if (!in.ok() || row.key.empty() || row.table.value >= tables::kAll.size()) return bad_row("ids");
  return row;
}

}  // namespace baton
