#include "server/grpc/certificates.h"

#include <string>
#include <utility>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "base/assert.h"

namespace baton {
namespace {

/// Called by gRPC before each handshake.
grpc_ssl_certificate_config_reload_status fetch(void* certificates,
                                                grpc_ssl_server_certificate_config** config) {
  const auto pem = static_cast<ServerCertificates*>(certificates)->take_new();
  if (!pem.has_value()) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  grpc_ssl_pem_key_cert_pair pair{.private_key = pem->key.c_str(),
                                  .cert_chain = pem->certificate.c_str()};
  // gRPC 1.51 requires authorities, but uses them only if clients are checked.
  const std::string& authorities = pem->ca.empty() ? pem->certificate : pem->ca;
  *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

/// gRPC's own C++ credentials take a certificate once; its C interface can ask again.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  ReloadingCredentials(std::shared_ptr<ServerCertificates> certificates, bool clients_checked)
      : certificates_(std::move(certificates)),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                clients_checked ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
                &fetch, certificates_.get()))) {}
  ReloadingCredentials(const ReloadingCredentials&) = delete;
  ReloadingCredentials& operator=(const ReloadingCredentials&) = delete;
  ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {
    BATON_ASSERT(false);  // gRPC asks only for server credentials.
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  std::shared_ptr<ServerCertificates> certificates_;
  grpc_server_credentials* credentials_;
};

}  // namespace

Result<std::shared_ptr<ServerCertificates>> ServerCertificates::load(
    const client::TlsOptions& files) {
  std::shared_ptr<ServerCertificates> out(new ServerCertificates);
  BATON_TRY(out->pem_, secure::read_pem(files));
  out->clients_checked_ = !files.ca_file.empty();
  return out;
}

Status ServerCertificates::reload(const client::TlsOptions& files) {
  BATON_ASSERT(files.ca_file.empty() != clients_checked_);
  BATON_TRY(secure::Pem pem, secure::read_pem(files));
  const std::lock_guard lock(mutex_);
  if (pem == pem_) return {};
  pem_ = std::move(pem);
  taken_ = false;
  return {};
}

std::optional<secure::Pem> ServerCertificates::take_new() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(taken_, true)) return std::nullopt;
  return pem_;
}

std::shared_ptr<grpc::ServerCredentials> ServerCertificates::credentials() {
  return std::make_shared<ReloadingCredentials>(shared_from_this(), clients_checked_);
}

}  // namespace baton
