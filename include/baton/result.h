#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace baton::client {

/// What a call or an item of a batch failed with. The numbers are those of the wire and never
/// change. A newer broker may send a number that is not listed here: its name and text still
/// explain it.
enum class Code : std::uint32_t {  // NOLINT(performance-enum-size): as wide as on the wire.
  invalid_argument = 1,
  not_found = 2,
  already_exists = 3,
  unavailable = 4,
  resource_exhausted = 5,
  failed_precondition = 6,
  deadline_exceeded = 7,
  cancelled = 8,
  internal = 9,
  lease_lost = 101,
  queue_not_found = 102,
  queue_exists = 103,
  message_not_found = 104,
  queue_full = 105,
  dedup_full = 106,
  disk_full = 208,
  malformed = 210,
  stale_epoch = 301,
  stream_not_found = 302,
  stream_exists = 303,
  partition_not_found = 304,
  offset_out_of_range = 305,
  sequence_gap = 306,
  producer_fenced = 307,
  read_only = 308,
  handover_timeout = 309,
  bucket_not_found = 401,
  bucket_exists = 402,
  revision_mismatch = 403,
};

/// What went wrong: a stable number and its name for programs, a sentence for people.
struct Error {
  Code code = Code::internal;
  std::string name{};  // "lease_lost"
  std::string text{};  // "cannot reach the broker at 127.0.0.1:7470: connection refused"

  bool operator==(const Error&) const = default;
};

/// "lease_lost: the lease ended before the request arrived".
std::string to_string(const Error& error);

/// A T, or the Error that was met instead.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  Result(Error error) : std::expected<T, Error>(std::unexpected(std::move(error))) {}  // NOLINT
};

using Status = Result<void>;

}  // namespace baton::client
