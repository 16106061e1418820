#include "sdk/base/errors.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include <baton/v1/error.pb.h>
#include <baton/v1/status.pb.h>
#include <fmt/format.h>

#include "base/result.h"

namespace baton::client {
namespace {

Errc code_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE: return Errc::invalid_argument;
    case grpc::StatusCode::NOT_FOUND: return Errc::not_found;
    case grpc::StatusCode::ALREADY_EXISTS: return Errc::already_exists;
    case grpc::StatusCode::UNAVAILABLE: return Errc::unavailable;
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return Errc::resource_exhausted;
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::UNIMPLEMENTED: return Errc::failed_precondition;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return Errc::deadline_exceeded;
    case grpc::StatusCode::CANCELLED: return Errc::cancelled;
    default: return Errc::internal;
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
  v1::CallStatus details;
  if (!details.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& detail : details.details()) {
    v1::Error error;
    // Another program's bytes may parse by accident; our errors always carry a name.
    if (detail.UnpackTo(&error) && is_name(error.name())) return error;
  }
  return std::nullopt;
}

}  // namespace

Error from_proto(const v1::Error& error) {
  const auto code = static_cast<Errc>(error.code());
  if (error.name().empty() || error.name() == errc_name(code)) return {code, error.text()};
  return {code, fmt::format("{}: {}", error.name(), error.text())};  // Of a newer broker.
}

Error from_grpc(const grpc::Status& status, std::string_view address) {
  if (const std::optional<v1::Error> details = details_of(status)) return from_proto(*details);
  const Errc code = code_of(status.error_code());
  if (status.ok()) {
    return {Errc::unavailable, fmt::format("the broker at {} ended the stream", address)};
  }
  switch (code) {
    case Errc::unavailable: return {code, unavailable_text(status.error_message(), address)};
    case Errc::deadline_exceeded:
      return {code, fmt::format("the broker at {} did not answer in time", address)};
    default: return {code, status.error_message()};
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
