#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton {

/// Counters of the connections to the gRPC port. Written by the Acceptor and by gRPC's threads,
/// read by any thread.
struct ConnectionCounters {
  std::atomic<std::uint64_t> max{0};
  std::atomic<std::uint64_t> open{0};
  std::atomic<std::uint64_t> accepted_total{0};
  std::atomic<std::uint64_t> refused_full_total{0};     // `max` connections were open already.
  std::atomic<std::uint64_t> refused_silent_total{0};   // The client sent nothing in time.
  std::atomic<std::uint64_t> refused_foreign_total{0};  // The client spoke another protocol.
  std::atomic<std::uint64_t> handshakes_failed_total{0};
};

/// What the metrics show beside the counters of the broker and of the services.
struct ServerFacts {
  ConnectionCounters connections{};
  std::string version{};
  std::string data_folder{};
};

/// What is wrong with a connection that begins with `bytes` (at least one, at most a few), for the
/// operator; empty when nothing is wrong. A gRPC client speaks first: with HTTP/2's preface, or
/// with a TLS handshake. Pure.
std::string_view wrong_greeting(std::string_view bytes, bool tls);

}  // namespace baton
