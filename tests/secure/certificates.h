#pragma once

#include <string>
#include <vector>

#include "e2e/process.h"

/// Certificates for the tests, made when first needed.
namespace baton::secure_tests {

/// A certificate and its key, as paths of PEM files.
struct Pair {
  std::string certificate;
  std::string key;
};

/// Two authorities and what they have signed: ours, and one that must not be trusted.
class Certificates {
 public:
  static const Certificates& get();

  [[nodiscard]] std::string ca() const { return folder_ / "ca.pem"; }
  [[nodiscard]] std::string other_ca() const { return folder_ / "other-ca.pem"; }
  /// For 127.0.0.1 and localhost.
  [[nodiscard]] Pair server() const { return pair("server"); }
  /// For the same, signed by the other authority.
  [[nodiscard]] Pair renewed() const { return pair("renewed"); }
  /// For broker.example alone.
  [[nodiscard]] Pair elsewhere() const { return pair("elsewhere"); }
  [[nodiscard]] Pair client() const { return pair("client"); }
  /// Signed by the other authority.
  [[nodiscard]] Pair stranger() const { return pair("stranger"); }
  /// A new file in the same folder.
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const;

 private:
  Certificates();
  [[nodiscard]] Pair pair(const std::string& name) const;
  void make_authority(const std::string& name) const;
  void sign(const std::string& name, const std::string& authority, const std::string& names) const;

  e2e::TempFolder folder_;
};

}  // namespace baton::secure_tests
