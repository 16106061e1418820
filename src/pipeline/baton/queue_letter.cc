#include "pipeline/baton/queue_letter.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/limits.h"
#include "pipeline/ends/text.h"

namespace baton::pipeline {
namespace {

constexpr std::string_view kPrefix = "baton-";
constexpr const char* kKey = "baton-key";
constexpr const char* kPacked = "baton-packed";
constexpr std::size_t kTextMax = 2048;                    // Of the text of one letter's own header.
constexpr std::size_t kOwnHeaders = 16;                   // The most headers of the letter itself.
constexpr std::size_t kOwnBytes = std::size_t{8} * 1024;  // The most bytes of these headers.

}  // namespace

namespace {

bool fits_into_headers(const Record& record) {
  std::set<std::string_view> names;
  std::size_t bytes = record.key.size();
  for (const auto& [name, value] : record.headers) {
    // A header that an earlier dead letter added would be taken for one of this letter.
    const bool plain =
        is_text(name) && is_text(value) && !name.empty() && !name.starts_with(kPrefix);
    if (!plain || !names.insert(name).second) return false;
    bytes += name.size() + value.size();
  }
  return is_text(record.key) && names.size() + kOwnHeaders <= limits::kHeadersPerMessage &&
         bytes + kOwnBytes <= limits::kHeaderBytes;
}

std::string packed(const Record& record) {
  std::string bytes;
  Encoder out(bytes);
  out.blob(record.key);
  out.varint(record.headers.size());
  for (const auto& [name, value] : record.headers) {
    out.blob(name);
    out.blob(value);
  }
  out.blob(record.value);
  return bytes;
}

Result<Record> unpacked(std::string_view payload) {
  Record record;
  Decoder in(payload);
  record.key = in.blob();
  const std::uint64_t headers = in.count(2);
  for (std::uint64_t i = 0; i < headers && in.ok(); ++i) {
    std::string name(in.blob());
    record.headers.emplace_back(std::move(name), in.blob());
  }
  record.value = in.blob();
  if (!in.finish()) return Error{Errc::malformed, "a dead letter that cannot be unpacked"};
  return record;
}

/// Text that protobuf accepts, cut to kTextMax.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, kTextMax));
  if (is_text(result)) return result;
  for (char& c : result) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return result;
}

}  // namespace

client::NewMessage to_message(const DeadLetter& letter) {
  client::NewMessage message;
  const Record& record = *letter.record;
  for (const auto& [name, value] : letter.headers()) message.headers[name] = shown(value);
  if (fits_into_headers(record)) {
    message.payload = record.value;
    for (const auto& [name, value] : record.headers) message.headers[name] = value;
    message.headers[kKey] = record.key;
  } else {
    message.payload = packed(record);
    message.headers[kPacked] = "1";
  }
  // The id includes the contents: after a stream was deleted and created again, another record has
  // the same offset.
  message.dedup_id = fmt::format("{}#{:016x}", letter.id(), hash64(record.key + record.value));
  if (message.dedup_id.size() > limits::kDedupIdBytes) {
    message.dedup_id =
        fmt::format("{:016x}{:016x}", hash64(message.dedup_id), hash64(message.dedup_id + "2"));
  }
  return message;
}

Result<StoredLetter> from_message(const client::Headers& headers, std::string_view payload) {
  StoredLetter letter;
  const bool is_packed = headers.contains(kPacked);
  if (is_packed) {
    BATON_TRY(letter.record, unpacked(payload));
  } else {
    letter.record.value = payload;
  }
  for (const auto& [name, value] : headers) {
    if (name.starts_with(kPrefix)) {
      letter.about[name] = value;
    } else if (!is_packed) {
      letter.record.headers.emplace_back(name, value);
    }
  }
  if (!is_packed) letter.record.key = letter.what(kKey);
  take_place(letter);
  return letter;
}

}  // namespace baton::pipeline
