#include "secure/certificates.h"

#include <gtest/gtest.h>

namespace baton::secure_tests {
namespace {

void openssl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"/usr/bin/env", "openssl"});
  const auto made = e2e::run_command(std::move(arguments));
  EXPECT_EQ(made.exit_code, 0) << made.err;
}

}  // namespace

const Certificates& Certificates::get() {
  static const Certificates kOnly;
  return kOnly;
}

Certificates::Certificates() {
  make_authority("ca");
  make_authority("other-ca");
  sign("server", "ca", "IP:127.0.0.1,DNS:localhost");
  sign("renewed", "other-ca", "IP:127.0.0.1,DNS:localhost");
  sign("elsewhere", "ca", "DNS:broker.example");
  sign("client", "ca", "DNS:client.example");
  sign("stranger", "other-ca", "DNS:client.example");
}

Pair Certificates::pair(const std::string& name) const {
  return {.certificate = folder_ / (name + ".pem"), .key = folder_ / (name + ".key")};
}

std::string Certificates::file(const std::string& name, const std::string& text) const {
  const std::string path = folder_ / name;
  e2e::write_file(path, text);
  return path;
}

void Certificates::make_authority(const std::string& name) const {
  openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
           "-days", "2", "-subj", "/CN=Test authority " + name, "-keyout", pair(name).key, "-out",
           pair(name).certificate});
}

void Certificates::sign(const std::string& name, const std::string& authority,
                        const std::string& names) const {
  openssl({"req",
           "-x509",
           "-newkey",
           "ec",
           "-pkeyopt",
           "ec_paramgen_curve:P-256",
           "-noenc",
           "-days",
           "2",
           "-subj",
           "/CN=" + name,
           "-addext",
           "subjectAltName=" + names,
           "-addext",
           "basicConstraints=critical,CA:FALSE",
           "-CA",
           pair(authority).certificate,
           "-CAkey",
           pair(authority).key,
           "-keyout",
           pair(name).key,
           "-out",
           pair(name).certificate});
}

}  // namespace baton::secure_tests
