#include "server/grpc/record_wire.h"

#include <baton/v1/streams.pb.h>

#include "server/grpc/wire_fields.h"

namespace baton {
namespace {

std::string encode_header(const RecordHeader& header) {
  std::string out;
  append_blob(out, v1::RecordHeader::kNameFieldNumber, header.name);
  if (header.value.has_value()) {
    append_blob(out, v1::RecordHeader::kValueFieldNumber, *header.value);
  }
  return out;
}

/// Appends a ReadRecord as `field` of its response.
void append_record(std::string& out, unsigned field, RecordView record) {
  using Fields = v1::Record;
  std::string body;
  body.reserve(32 + (record.key ? record.key->size() : 0) +
               (record.value ? record.value->size() : 0));
  append_number(body, Fields::kOffsetFieldNumber, static_cast<std::uint64_t>(record.offset.value));
  append_number(body, Fields::kTimestampMsFieldNumber,
                static_cast<std::uint64_t>(record.timestamp.value));
  if (record.key.has_value()) append_blob(body, Fields::kKeyFieldNumber, *record.key);
  if (record.value.has_value()) append_blob(body, Fields::kValueFieldNumber, *record.value);
  while (const auto header = record.headers.next())
    append_blob(body, Fields::kHeadersFieldNumber, encode_header(*header));
  append_blob(out, field, body);
}

}  // namespace

void append_read_record(std::string& out, RecordView record) {
  append_record(out, v1::ReadResponse::kRecordsFieldNumber, record);
}
void append_batch_record(std::string& out, RecordView record) {
  append_record(out, v1::SubscribeResponse::Batches::kRecordsFieldNumber, record);
}

}  // namespace baton
