#include "core/queue/message.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/growing.h"
#include "base/limits.h"

namespace baton {
namespace {

// Format 2 has fields, format 1 has none.
constexpr std::uint8_t kPlain = 1;
constexpr std::uint8_t kWithFields = 2;
constexpr std::size_t kFixedBytes = 1 + 16 + 8 + 8;

/// The part between the format and the throttle keys, which all ways to build a message share.
void begin(Encoder& out, Uuid id, Instant enqueued_at, Instant expires_at, std::string_view key) {
  out.raw(id.raw());
  out.fixed(enqueued_at.ns);
  out.fixed(expires_at.ns);
  out.blob(key);
}

}  // namespace

MessageRef Message::make(const NewMessage& message, Uuid id, Instant enqueued_at,
                         Instant expires_at) {
  std::size_t size = kFixedBytes + message.fairness_key.size() + message.payload.size() + 16;
  for (const auto& [name, value] : message.headers) size += name.size() + value.size() + 6;
  for (const std::string& key : message.throttle_keys) size += key.size() + 3;
  std::string bytes;
  bytes.reserve(size);
  Encoder out(bytes);
  out.u8(kPlain);
  begin(out, id, enqueued_at, expires_at, message.fairness_key);
  out.varint(message.throttle_keys.size());
  for (const std::string& key : message.throttle_keys) out.blob(key);
  out.varint(message.headers.size());
  for (const auto& [name, value] : message.headers) {
    out.blob(name);
    out.blob(value);
  }
  out.raw(message.payload);
  return from_own(std::move(bytes));
}

MessageRef Message::from_own(std::string bytes) {
  auto made = std::make_shared<Message>(Private{}, std::move(bytes));
  Decoder read(made->bytes_);
  made->find_fields(read);
  BATON_ASSERT(read.ok());
  return made;
}

MessageRef Message::with_headers(const Message& message, const std::vector<Header>& headers,
                                 Instant expires_at) {
  std::vector<std::pair<std::string_view, std::string_view>> all = message.headers();
  std::erase_if(all, [&](const auto& old) {
    return std::ranges::any_of(headers,
                               [&](const Header& added) { return added.first == old.first; });
  });
  for (const auto& [name, value] : headers) all.emplace_back(name, value);
  std::string bytes;
  Encoder out(bytes);
  out.u8(message.field_area().empty() ? kPlain : kWithFields);
  begin(out, message.id_, message.enqueued_at_, expires_at, message.fairness_key_);
  out.varint(message.throttle_count_);
  out.raw(message.throttle_area_);
  out.varint(all.size());
  for (const auto& [name, value] : all) {
    out.blob(name);
    out.blob(value);
  }
  out.raw(message.field_area());
  out.raw(message.payload_);
  return from_own(std::move(bytes));
}

Result<MessageRef> Message::parse(std::string_view bytes) {
  auto made = std::make_shared<Message>(Private{}, std::string(bytes));
  Decoder read(made->bytes_);
  made->find_fields(read);
  if (!read.ok()) return unreadable(read, Errc::malformed, "a stored message");
  return MessageRef(std::move(made));
}

MessageRef Message::parse(std::string_view bytes, Decoder& within) {
  if (!within.ok()) return nullptr;
  auto made = std::make_shared<Message>(Private{}, std::string(bytes));
  Decoder read(made->bytes_);
  made->find_fields(read);
  if (read.ok()) return made;
  within.fail_as(read, "message");
  return nullptr;
}

void Message::find_fields(Decoder& in) {
  const std::uint8_t format = in.u8();
  if (format != kPlain && format != kWithFields) in.fail();
  const std::string_view id = in.raw(16);
  enqueued_at_ = {in.fixed<std::int64_t>()};
  expires_at_ = {in.fixed<std::int64_t>()};
  fairness_key_ = in.blob();
  throttle_count_ = static_cast<std::uint32_t>(in.count(1));
  const char* const throttles = in.rest().data();
  for (std::uint32_t i = 0; i < throttle_count_; ++i) in.blob();
  throttle_area_ = {throttles, static_cast<std::size_t>(in.rest().data() - throttles)};
  header_count_ = static_cast<std::uint32_t>(in.count(2));
  const char* const headers = in.rest().data();
  for (std::uint32_t i = 0; i < 2 * header_count_; ++i) in.blob();
  header_area_ = {headers, static_cast<std::size_t>(in.rest().data() - headers)};
  if (format == kWithFields) {
    Decoder inner(in.blob());
    skip_fields(inner);
    if (!inner.ok()) in.fail_as(inner);
  }
  payload_ = in.rest();
  if (fairness_key_.size() > limits::kFairnessKeyBytes) in.fail();
  if (in.ok()) id_ = Uuid::from_raw(id);
}

std::vector<std::pair<std::string_view, std::string_view>> Message::headers() const {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  all.reserve(header_count_);
  Decoder in(header_area_);
  for (std::uint32_t i = 0; i < header_count_; ++i) {
    const std::string_view name = in.blob();
    const std::string_view value = in.blob();
    all.emplace_back(name, value);
  }
  return all;
}

std::string_view Message::header(std::string_view name) const {
  for (const auto& [known, value] : headers()) {
    if (known == name) return value;
  }
  return {};
}

std::vector<std::string_view> Message::throttle_keys() const {
  std::vector<std::string_view> keys;
  keys.reserve(throttle_count_);
  Decoder in(throttle_area_);
  for (std::uint32_t i = 0; i < throttle_count_; ++i) keys.push_back(in.blob());
  return keys;
}

}  // namespace baton
