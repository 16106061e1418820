#include "core/queue/rows.h"

#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/growing.h"

namespace baton {
namespace {

// A message's row begins with its format. The first two are no longer written, but stay in stores
// until their message changes. Format 2 is the format of outgoing messages.
constexpr std::uint8_t kMessageRow1 = 1;
constexpr std::uint8_t kMessageRow2 = 2;
constexpr std::uint8_t kMessageRow = 3;
// The fields of a message's row.
constexpr std::uint64_t kFailure = 1;
constexpr std::uint64_t kTo = 2;
constexpr std::uint64_t kTransfer = 3;
// A row of `ids` has this bit in the byte of the table's number; without it the rest of the row is
// the key.
constexpr std::uint8_t kIdRow = 0x80;
// A row of `queues` begins with this byte. A row of format 1 begins with the queue's number, which
// is never 0.
constexpr std::uint8_t kQueueRow = 0;

Error bad_row(std::string_view table, const Decoder& in) {
  return unreadable(in, Errc::store_corrupt, fmt::format("a row of the table '{}'", table));
}
Error bad_row(std::string_view table) { return bad_row(table, Decoder({})); }

/// Reads the fields at the end of a row; fails if any part of the row cannot be read.
Status finish_row(std::string_view table, Decoder& in) {
  skip_fields(in);
  if (!in.ok()) return bad_row(table, in);
  return {};
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

namespace {

void put_failure(Encoder& out, const FailureNote& failure) {
  std::string note;
  Encoder inner(note);
  inner.fixed(failure.first.ns);
  inner.fixed(failure.last.ns);
  inner.blob(failure.reason);
  put_field(out, kFailure, note);
}

void put_transfer(Encoder& out, TransferId transfer) {
  std::string name;
  Encoder(name).varint(transfer.boot);
  Encoder(name).varint(transfer.number);
  put_field(out, kTransfer, name);
}

FailureRef read_failure(Decoder& in) {
  auto note = std::make_shared<FailureNote>();
  note->first = {in.fixed<std::int64_t>()};
  note->last = {in.fixed<std::int64_t>()};
  note->reason = in.blob();
  return note;
}

TransferId read_transfer(Decoder& in) {
  const std::uint64_t boot = in.varint();
  return {.boot = boot, .number = in.varint()};
}

void read_message_row(Decoder& in, MessageRow& row) {
  Decoder head(in.blob());
  row.sequence = Sequence{head.varint()};
  row.attempts = static_cast<std::uint32_t>(head.varint());
  for (FieldReader field(head); field.next();) {
    switch (field.number()) {
      case kFailure: row.failure = read_failure(field.value()); break;
      case kTo: row.to = field.value().rest(); break;
      case kTransfer: row.transfer = read_transfer(field.value()); break;
      default: field.skip();
    }
  }
  if (!head.ok()) in.fail_as(head);
}

void read_message_row_1(Decoder& in, MessageRow& row, bool outgoing) {
  row.sequence = Sequence{in.varint()};
  row.attempts = static_cast<std::uint32_t>(in.varint());
  if (in.u8() != 0) row.failure = read_failure(in);
  row.to = in.blob();
  if (!outgoing) return;
  Decoder name(in.blob());
  row.transfer = read_transfer(name);
  if (!name.ok()) in.fail();
}

}  // namespace

std::string encode_row(const MessageRow& row) {
  std::string value;
  value.reserve(row.message->bytes().size() + 24);
  Encoder out(value);
  out.u8(kMessageRow);
  out.blob_of(0, [&] {
    out.varint(row.sequence.value);
    out.varint(row.attempts);
    if (row.failure != nullptr) put_failure(out, *row.failure);
    if (!row.to.empty()) put_field(out, kTo, row.to);
    if (row.transfer.has_value()) put_transfer(out, *row.transfer);
  });
  out.raw(row.message->bytes());
  return value;
}

Result<MessageRow> decode_message_row(std::string_view value) {
  Decoder in(value);
  MessageRow row;
  switch (const std::uint8_t format = in.u8(); format) {
    case kMessageRow1:
    case kMessageRow2: read_message_row_1(in, row, format == kMessageRow2); break;
    case kMessageRow: read_message_row(in, row); break;
    default: return bad_row("messages");
  }
  row.message = Message::parse(in.rest(), in);
  if (!in.ok()) return bad_row("messages", in);
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
  BATON_TRY_STATUS(finish_row("keys", in));
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
  BATON_TRY_STATUS(finish_row("leases", in));
  return row;
}

std::string encode_row(const QueueRow& row) {
  std::string value;
  Encoder out(value);
  out.u8(kQueueRow);
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
  row.old = !value.starts_with(static_cast<char>(kQueueRow));
  if (!row.old) in.u8();
  row.id = QueueId{in.varint()};
  row.next_sequence = Sequence{in.varint()};
  row.purged_before = Sequence{in.varint()};
  row.bytes = in.varint();
  row.delayed = in.varint();
  row.settings = row.old ? decode_settings_1(in) : decode_settings(in);
  if (row.id == QueueId{}) in.fail();
  BATON_TRY_STATUS(finish_row("queues", in));
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
  BATON_TRY_STATUS(finish_row("dedup", in));
  return row;
}

std::string encode_row(const IdRow& row) {
  std::string value;
  Encoder out(value);
  out.u8(kIdRow | row.table.value);
  out.blob(row.key);
  return value;
}

Result<IdRow> decode_id_row(std::string_view value) {
  Decoder in(value);
  IdRow row;
  const std::uint8_t first = in.u8();
  row.table = Table{static_cast<std::uint8_t>(first & ~kIdRow)};
  if ((first & kIdRow) != 0) {
    row.key = in.blob();
    BATON_TRY_STATUS(finish_row("ids", in));
  } else {
    row.key = in.rest();
  }
  if (!in.ok() || row.key.empty() || row.table.value >= tables::kAll.size()) return bad_row("ids");
  return row;
}

}  // namespace baton
