#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "base/uuid.h"
#include "core/queue/types.h"

namespace baton {

/// A stored message: what its producer sent, and never changes. One buffer of bytes that goes as it
/// is into the journal and the checkpoint; the views below point into it. Shared by the machine,
/// the checkpoint and deliveries on their way out.
///
/// ```
///   u8      format (1 or 2)
///   16      id
///   i64     enqueued_at, ns       i64  expires_at, ns
///   varint  fairness key length, bytes
///   varint  number of throttle keys, each: varint length, bytes
///   varint  number of headers, each: varint length, name, varint length, value
///   format 2 alone: blob of fields (base/growing.h), of which this version knows none
///   the rest: payload
/// ```
/// Format 2 is for fields to come: a message without any is written in format 1, and both are read.
class Message {
 public:
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() = default;

  /// Builds the buffer from a producer's message.
  static std::shared_ptr<const Message> make(const NewMessage& message, Uuid id,
                                             Instant enqueued_at, Instant expires_at);
  /// The same message with more headers, as a dead letter gets them (they replace headers of the
  /// same name), and another expiry.
  static std::shared_ptr<const Message> with_headers(const Message& message,
                                                     const std::vector<Header>& headers,
                                                     Instant expires_at);
  /// Takes bytes that bytes() returned. Fails with malformed, or store_too_new.
  static Result<std::shared_ptr<const Message>> parse(std::string_view bytes);
  /// The same for bytes that `within` has read: on failure it fails `within` and returns null.
  static std::shared_ptr<const Message> parse(std::string_view bytes, Decoder& within);

  [[nodiscard]] const Uuid& id() const { return id_; }
  [[nodiscard]] Instant enqueued_at() const { return enqueued_at_; }
  /// Instant::never() if the message does not expire.
  [[nodiscard]] Instant expires_at() const { return expires_at_; }
  [[nodiscard]] std::string_view fairness_key() const { return fairness_key_; }
  [[nodiscard]] std::string_view payload() const { return payload_; }
  [[nodiscard]] std::uint32_t header_count() const { return header_count_; }
  [[nodiscard]] bool has_throttle_keys() const { return throttle_count_ != 0; }
  [[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> headers() const;
  /// The value of the header `name`, or "" if the message has none.
  [[nodiscard]] std::string_view header(std::string_view name) const;
  [[nodiscard]] std::vector<std::string_view> throttle_keys() const;
  [[nodiscard]] std::string_view bytes() const { return bytes_; }

  /// For make_shared only.
  struct Private {
    explicit Private() = default;
  };
  Message(Private, std::string bytes) : bytes_(std::move(bytes)) {}

 private:
  /// The message in bytes that were encoded here.
  static std::shared_ptr<const Message> from_own(std::string bytes);
  /// Reads all of `in`, and points the views into the buffer.
  void find_fields(Decoder& in);
  /// The blob of fields between headers and payload; empty in format 1.
  [[nodiscard]] std::string_view field_area() const {
    return {header_area_.end(), payload_.begin()};
  }

  std::string bytes_;
  Uuid id_;
  Instant enqueued_at_;
  Instant expires_at_;
  std::string_view fairness_key_;
  std::string_view throttle_area_;
  std::string_view header_area_;
  std::string_view payload_;
  std::uint32_t throttle_count_ = 0;
  std::uint32_t header_count_ = 0;
};

using MessageRef = std::shared_ptr<const Message>;

}  // namespace baton
