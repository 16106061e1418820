#include "base/secure/pem.h"

#include <cerrno>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/result.h"

namespace baton::secure {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{16} << 20U;

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;

Result<std::string> read(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string content(kFileBytesMax + 1, '\0');
  if (file) file.read(content.data(), static_cast<std::streamsize>(content.size()));
  const auto count = static_cast<std::size_t>(file.gcount());
  if (!file.is_open() || file.bad() || (count == 0 && errno != 0)) {
    return invalid_argument(fmt::format("cannot read the TLS file {}: {}", path,
                                        std::generic_category().message(errno)));
  }
  if (count > kFileBytesMax) {
    return invalid_argument(fmt::format("the TLS file {} is larger than 16 MiB", path));
  }
  content.resize(count);
  return content;
}

Bio open(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Certificate first_certificate(const std::string& text) {
  const Bio bio = open(text);
  Certificate found(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return found;
}

/// Whether every certificate in `text` can be read.
bool are_whole(const std::string& text) {
  const Bio bio = open(text);
  while (Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) != nullptr) {
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return at_end;
}

Status check_certificates(const std::string& path, const std::string& text) {
  if (first_certificate(text) != nullptr) {
    if (are_whole(text)) return {};
    return invalid_argument(fmt::format("{} holds a certificate that cannot be read (PEM)", path));
  }
  const bool is_key = text.find("PRIVATE KEY-----") != std::string::npos;
  return invalid_argument(
      fmt::format("{} holds {}no certificate (PEM)", path, is_key ? "a private key, and " : ""));
}

/// OpenSSL's callback for the passphrase of a key: there is nobody to type one.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Result<Key> read_key(const std::string& path, const std::string& text) {
  const Bio bio = open(text);
  bool is_encrypted = false;
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, &is_encrypted));
  ERR_clear_error();
  if (key != nullptr) return key;
  if (is_encrypted) {
    return invalid_argument(
        fmt::format("the private key in {} has a passphrase; give one without", path));
  }
  return invalid_argument(fmt::format("{} holds no private key (PEM)", path));
}

}  // namespace

Result<Pem> read_pem(const client::TlsOptions& files) {
  Pem pem;
  if (!files.ca_file.empty()) {
    BATON_TRY(pem.ca, read(files.ca_file));
    BATON_TRY_STATUS(check_certificates(files.ca_file, pem.ca));
  }
  if (files.certificate_file.empty() && files.key_file.empty()) return pem;
  if (files.certificate_file.empty() || files.key_file.empty()) {
    const bool has_key = files.certificate_file.empty();
    return invalid_argument(fmt::format("a TLS certificate and its key go together: {} has no {}",
                                        has_key ? files.key_file : files.certificate_file,
                                        has_key ? "certificate" : "key"));
  }
  BATON_TRY(pem.certificate, read(files.certificate_file));
  BATON_TRY_STATUS(check_certificates(files.certificate_file, pem.certificate));
  BATON_TRY(pem.key, read(files.key_file));
  BATON_TRY(const Key key, read_key(files.key_file, pem.key));
  const Certificate certificate = first_certificate(pem.certificate);
  const bool fits = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits) {
    return invalid_argument(
        fmt::format("the private key in {} does not belong to the certificate in {}",
                    files.key_file, files.certificate_file));
  }
  const Context context(SSL_CTX_new(TLS_method()));
  if (SSL_CTX_use_certificate(context.get(), certificate.get()) == 1) return pem;
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return invalid_argument(fmt::format("the certificate in {} cannot be used: {}",
                                      files.certificate_file,
                                      reason == nullptr ? "OpenSSL refuses it" : reason));
}

}  // namespace baton::secure
