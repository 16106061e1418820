#include "sdk/base/errors.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <baton/v1/queues.pb.h>
#include <baton/v1/status.pb.h>

#include "base/result.h"

namespace baton::client {
namespace {

// The public enum repeats the numbers of base/errc.def, which is not installed.
constexpr bool same(Code code, Errc errc) {
  return static_cast<std::uint32_t>(code) == static_cast<std::uint32_t>(errc);
}
static_assert(same(Code::invalid_argument, Errc::invalid_argument));
static_assert(same(Code::not_found, Errc::not_found));
static_assert(same(Code::already_exists, Errc::already_exists));
static_assert(same(Code::unavailable, Errc::unavailable));
static_assert(same(Code::resource_exhausted, Errc::resource_exhausted));
static_assert(same(Code::failed_precondition, Errc::failed_precondition));
static_assert(same(Code::deadline_exceeded, Errc::deadline_exceeded));
static_assert(same(Code::cancelled, Errc::cancelled));
static_assert(same(Code::internal, Errc::internal));
static_assert(same(Code::lease_lost, Errc::lease_lost));
static_assert(same(Code::queue_not_found, Errc::queue_not_found));
static_assert(same(Code::queue_exists, Errc::queue_exists));
static_assert(same(Code::message_not_found, Errc::message_not_found));
static_assert(same(Code::queue_full, Errc::queue_full));
static_assert(same(Code::dedup_full, Errc::dedup_full));
static_assert(same(Code::disk_full, Errc::disk_full));
static_assert(same(Code::malformed, Errc::malformed));
static_assert(same(Code::stale_epoch, Errc::stale_epoch));
static_assert(same(Code::stream_not_found, Errc::stream_not_found));
static_assert(same(Code::stream_exists, Errc::stream_exists));
static_assert(same(Code::partition_not_found, Errc::partition_not_found));
static_assert(same(Code::offset_out_of_range, Errc::offset_out_of_range));
static_assert(same(Code::sequence_gap, Errc::sequence_gap));
static_assert(same(Code::producer_fenced, Errc::producer_fenced));
static_assert(same(Code::read_only, Errc::read_only));
static_assert(same(Code::handover_timeout, Errc::handover_timeout));
static_assert(same(Code::bucket_not_found, Errc::bucket_not_found));
static_assert(same(Code::bucket_exists, Errc::bucket_exists));
static_assert(same(Code::revision_mismatch, Errc::revision_mismatch));

Code code_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE: return Code::invalid_argument;
    case grpc::StatusCode::NOT_FOUND: return Code::not_found;
    case grpc::StatusCode::ALREADY_EXISTS: return Code::already_exists;
    case grpc::StatusCode::UNAVAILABLE: return Code::unavailable;
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return Code::resource_exhausted;
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::UNIMPLEMENTED: return Code::failed_precondition;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return Code::deadline_exceeded;
    case grpc::StatusCode::CANCELLED: return Code::cancelled;
    default: return Code::internal;
  }
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string lower_first(std::string_view text) {
  std::string lowered(text);
  if (!lowered.empty()) {
    lowered[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(lowered[0])));
  }
  return lowered;
}

// gRPC wraps the reason: "failed to connect to all addresses; last error: UNKNOWN: ipv4:1.2.3.4:5:
// Failed to connect to remote host: Connection refused". People want its last part.
std::string unavailable_text(std::string_view message, std::string_view address) {
  constexpr std::string_view kRefused = "Failed to connect to remote host: ";
  constexpr std::string_view kNoAddress = "failed to connect to all addresses";
  if (const auto at = message.rfind(kRefused); at != std::string_view::npos) {
    return fmt::format("cannot reach the broker at {}: {}", address,
                       lower_first(message.substr(at + kRefused.size())));
  }
  if (message.starts_with(kNoAddress) || message.starts_with("DNS resolution failed")) {
    return fmt::format("cannot reach the broker at {}: {}", address, message);
  }
  return fmt::format("lost the connection to the broker at {}: {}", address, lower_first(message));
}

/// The broker's own error, if the status carries one.
std::optional<v1::Error> details_of(const grpc::Status& status) {
  v1::Status details;
  if (!details.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& detail : details.details()) {
    v1::Error error;
    // Another program's bytes may parse by accident; our errors always carry a name.
    if (detail.UnpackTo(&error) && is_name(error.name())) return error;
  }
  return std::nullopt;
}

}  // namespace

std::string to_string(const Error& error) { return fmt::format("{}: {}", error.name, error.text); }

Error make_error(Code code, std::string text) {
  return {.code = code,
          .name = std::string(errc_name(static_cast<Errc>(code))),
          .text = std::move(text)};
}

Error from_proto(const v1::Error& error) {
  return {.code = static_cast<Code>(error.code()), .name = error.name(), .text = error.text()};
}

Error from_grpc(const grpc::Status& status, std::string_view address) {
  if (const std::optional<v1::Error> details = details_of(status)) return from_proto(*details);
  const Code code = code_of(status.error_code());
  if (status.ok()) {
    return make_error(Code::unavailable, fmt::format("the broker at {} ended the stream", address));
  }
  switch (code) {
    case Code::unavailable:
      return make_error(code, unavailable_text(status.error_message(), address));
    case Code::deadline_exceeded:
      return make_error(code, fmt::format("the broker at {} did not answer in time", address));
    default: return make_error(code, status.error_message());
  }
}

bool is_worth_retrying(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::DEADLINE_EXCEEDED: return true;
    default: return false;
  }
}

}  // namespace baton::client
