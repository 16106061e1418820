#include "base/net/connections.h"

#include <algorithm>
#include <array>

namespace baton {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr char kTlsHandshake = '\x16';

bool agree(std::string_view bytes, std::string_view wanted) {
  const std::size_t common = std::min(bytes.size(), wanted.size());
  return bytes.substr(0, common) == wanted.substr(0, common);
}

}  // namespace

std::string_view wrong_greeting(std::string_view bytes, bool tls) {
  if (bytes.front() == kTlsHandshake) {
    return tls ? "" : "the client speaks TLS, and this port is plain text";
  }
  if (agree(bytes, kPreface)) {
    return tls ? "the client speaks plain text, and this port wants TLS" : "";
  }
  constexpr std::array<std::string_view, 3> kHttp1 = {"GET ", "POST ", "HEAD "};
  if (std::ranges::any_of(kHttp1, [&](std::string_view verb) { return agree(bytes, verb); })) {
    return "the client speaks HTTP/1, and this port is gRPC's";
  }
  return "the client speaks neither gRPC nor TLS";
}

}  // namespace baton
