#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

/// Addresses of servers, as people write them.
namespace baton {

inline constexpr std::size_t kHostBytesMax = 253;

/// "127.0.0.1:7470", "[::1]:7470" or "broker.example:7470". A port is 1 to 65535.
struct Address {
  std::string host{};  // Without brackets.
  std::uint16_t port = 0;
};
/// Fails with invalid_argument, naming the part that is wrong.
Result<Address> parse_address(std::string_view text);

/// A URL cut at "://".
struct SchemeSplit {
  std::string_view scheme{};  // Empty: there is no "://".
  std::string_view rest{};
};
SchemeSplit split_scheme(std::string_view url);

/// Where a Baton broker is: HOST:PORT, with baton:// or batons:// (TLS) before it or with neither;
/// or unix:PATH.
struct BrokerAddress {
  std::string address{};  // Without the scheme.
  bool is_tls = false;    // batons://
  bool is_plain = false;  // baton://. Neither flag: other settings decide.
};
/// Fails with invalid_argument, naming the part that is wrong.
Result<BrokerAddress> parse_broker_address(std::string_view text);

}  // namespace baton
