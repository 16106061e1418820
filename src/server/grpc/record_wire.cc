#include "server/grpc/record_wire.h"

#include "server/grpc/wire_fields.h"

namespace baton {
namespace {

std::string encode_header(const RecordHeader& header) {
  std::string out;
  append_blob(out, 1, header.name);
  if (header.value.has_value()) append_blob(out, 2, *header.value);
  return out;
}

/// A ReadRecord.
void append_record(std::string& out, unsigned field, RecordView record) {
  std::string body;
  body.reserve(32 + (record.key ? record.key->size() : 0) +
               (record.value ? record.value->size() : 0));
  append_number(body, 1, static_cast<std::uint64_t>(record.offset.value));
  append_number(body, 2, static_cast<std::uint64_t>(record.timestamp.value));
  if (record.key.has_value()) append_blob(body, 3, *record.key);
  if (record.value.has_value()) append_blob(body, 4, *record.value);
  while (const auto header = record.headers.next()) append_blob(body, 5, encode_header(*header));
  append_blob(out, field, body);
}

}  // namespace

void append_read_record(std::string& out, RecordView record) { append_record(out, 2, record); }
void append_batch_record(std::string& out, RecordView record) { append_record(out, 5, record); }

}  // namespace baton
