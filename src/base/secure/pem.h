#pragma once

#include <string>

#include <baton/security.h>

#include "base/result.h"

namespace baton::secure {

/// The contents of the files of TlsOptions; empty where no file is named.
struct Pem {
  std::string ca{};
  std::string certificate{};
  std::string key{};

  bool operator==(const Pem&) const = default;
};

/// Reads the files and checks that they are what they should be: certificates, and a private key
/// that fits. Fails with invalid_argument, naming the file and what is wrong: libraries would
/// notice only when they connect, and not say which file it was.
Result<Pem> read_pem(const client::TlsOptions& files);

}  // namespace baton::secure
