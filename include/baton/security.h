#pragma once

#include <optional>
#include <string>

namespace baton::client {

/// Paths of PEM files. Without a `ca_file` the system's certificate authorities are trusted.
struct TlsOptions {
  std::string ca_file{};
  std::string certificate_file{};  // Together with key_file: the client proves who it is.
  std::string key_file{};
  std::string server_name{};  // When the certificate names another host than the address does.

  bool operator==(const TlsOptions&) const = default;
};

/// How to reach a server that asks for TLS or a login: a store of workers (NATS, etcd), or Kafka.
/// A Baton broker has TLS and no logins.
struct SecurityOptions {
  std::optional<TlsOptions> tls{};  // Absent: plain text, unless the URL says TLS (natss://).
  std::string user{};               // Together with a password.
  std::string password{};
  std::string token{};             // NATS.
  std::string credentials_file{};  // NATS: a .creds file with a JWT and its seed.
  std::string mechanism{};         // Kafka: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty: PLAIN.

  [[nodiscard]] bool has_login() const {
    return !user.empty() || !token.empty() || !credentials_file.empty();
  }
};

}  // namespace baton::client
