#include "base/secure/pem.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

namespace baton::secure {
namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const auto size = static_cast<std::size_t>(BIO_get_mem_data(bio, &data));
  return {data, size};
}

std::string key_pem(EVP_PKEY* key, const char* passphrase = nullptr) {
  const std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), key, passphrase != nullptr ? EVP_aes_128_cbc() : nullptr,
                           nullptr, 0, nullptr, const_cast<char*>(passphrase));
  return text_of(bio.get());
}

std::string certificate_pem(EVP_PKEY* key) {
  const std::unique_ptr<X509, Free> certificate(X509_new());
  X509_set_pubkey(certificate.get(), key);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_sign(certificate.get(), key, EVP_sha256());
  const std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate.get());
  return text_of(bio.get());
}

/// Two keys with their certificates, in a folder of the test's own.
class PemTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  static std::string error_of(const client::TlsOptions& files) {
    const auto pem = read_pem(files);
    if (pem) return "none";
    EXPECT_EQ(pem.error().code, Errc::invalid_argument);
    return pem.error().text;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("baton-pem-{}", ::getpid());
  Key key_{EVP_EC_gen("P-256")};
  Key other_{EVP_EC_gen("P-256")};
};

TEST_F(PemTest, ReadsWhatItIsGiven) {
  const auto pem = read_pem({.ca_file = write("ca", certificate_pem(other_.get())),
                             .certificate_file = write("cert", certificate_pem(key_.get())),
                             .key_file = write("key", key_pem(key_.get()))});

  ASSERT_TRUE(pem.has_value()) << pem.error().text;
  EXPECT_TRUE(pem->ca.starts_with("-----BEGIN CERTIFICATE"));
  EXPECT_TRUE(pem->certificate.starts_with("-----BEGIN CERTIFICATE"));
  EXPECT_TRUE(pem->key.starts_with("-----BEGIN PRIVATE KEY"));
  EXPECT_TRUE(read_pem({}).has_value());
}

// Libraries would only say that the connection failed, and much later.
TEST_F(PemTest, ErrorsNameTheFileAndWhatIsWrong) {
  const std::string key = write("key", key_pem(key_.get()));
  const std::string certificate = write("cert", certificate_pem(key_.get()));
  const std::string junk = write("junk", "hello\n");
  const std::string empty = write("empty", "");
  const std::string locked = write("locked", key_pem(key_.get(), "secret"));
  const std::string other = write("other", key_pem(other_.get()));

  EXPECT_EQ(error_of({.ca_file = "no/such/file"}),
            "cannot read the TLS file no/such/file: No such file or directory");
  EXPECT_EQ(error_of({.ca_file = folder_.string()}),
            fmt::format("cannot read the TLS file {}: Is a directory", folder_.string()));
  EXPECT_EQ(error_of({.ca_file = key}), key + " holds a private key, and no certificate (PEM)");
  EXPECT_EQ(error_of({.ca_file = junk}), junk + " holds no certificate (PEM)");
  EXPECT_EQ(error_of({.ca_file = empty}), empty + " holds no certificate (PEM)");
  EXPECT_EQ(error_of({.certificate_file = certificate}),
            "a TLS certificate and its key go together: " + certificate + " has no key");
  EXPECT_EQ(error_of({.key_file = key}),
            "a TLS certificate and its key go together: " + key + " has no certificate");
  EXPECT_EQ(error_of({.certificate_file = junk, .key_file = key}),
            junk + " holds no certificate (PEM)");
  EXPECT_EQ(error_of({.certificate_file = certificate, .key_file = certificate}),
            certificate + " holds no private key (PEM)");
  EXPECT_EQ(error_of({.certificate_file = certificate, .key_file = locked}),
            "the private key in " + locked + " has a passphrase; give one without");
  const std::string torn =
      write("torn", certificate_pem(key_.get()) + "-----BEGIN CERTIFICATE-----\nMIIB\n");
  EXPECT_EQ(error_of({.certificate_file = torn, .key_file = key}),
            torn + " holds a certificate that cannot be read (PEM)");
  const Key small(EVP_RSA_gen(1024));
  const std::string weak = write("weak", certificate_pem(small.get()));
  const std::string weak_key = write("weak_key", key_pem(small.get()));
  EXPECT_EQ(error_of({.certificate_file = weak, .key_file = weak_key}),
            "the certificate in " + weak + " cannot be used: ee key too small");
  EXPECT_EQ(
      error_of({.certificate_file = certificate, .key_file = other}),
      "the private key in " + other + " does not belong to the certificate in " + certificate);
}

}  // namespace
}  // namespace baton::secure
