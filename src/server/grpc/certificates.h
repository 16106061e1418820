#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include <baton/security.h>
#include <grpcpp/security/server_credentials.h>

#include "base/result.h"
#include "base/secure/pem.h"

namespace baton {

/// The certificate that the gRPC port shows, and the authority that its clients are checked
/// against. gRPC asks for them before every handshake, so both can change while the broker serves;
/// open connections stay. Thread-safe; gRPC's credentials hold it.
class ServerCertificates : public std::enable_shared_from_this<ServerCertificates> {
 public:
  /// Reads the files and checks that they are usable. An error names the file. Without a `ca_file`
  /// clients need no certificate.
  static Result<std::shared_ptr<ServerCertificates>> load(const client::TlsOptions& files);

  /// Reads these files from now on. On an error, which names the file, nothing changes. Whether
  /// clients need a certificate cannot change.
  Status reload(const client::TlsOptions& files);

  std::shared_ptr<grpc::ServerCredentials> credentials();

  /// For gRPC: what has changed since the last call; nullopt if nothing has.
  std::optional<secure::Pem> take_new();

 private:
  ServerCertificates() = default;

  bool clients_checked_ = false;  // Constant once loaded.
  std::mutex mutex_;
  secure::Pem pem_;
  bool taken_ = false;
};

}  // namespace baton
