#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <baton/connection.h>
#include <grpcpp/grpcpp.h>

#include "base/address.h"
#include "base/secure/settings.h"
#include "sdk/base/channel.h"

/// How the load programs reach their server: as the command line does, with batons:// and the
/// variables BATON_TLS_CA, BATON_TLS_CERT, BATON_TLS_KEY and BATON_TLS_SERVER_NAME.
namespace baton::bench {

inline client::ConnectionOptions connection_to(const std::string& address) {
  const auto parsed = parse_broker_address(address);
  if (!parsed) {
    std::fprintf(stderr, "%s\n", parsed.error().text.c_str());
    std::_Exit(2);
  }
  secure::Settings settings{.tls = parsed->is_tls};
  secure::take_tls_variables(settings,
                             parsed->is_plain ? secure::Scheme::plain : secure::Scheme::open,
                             secure::process_environment());
  client::ConnectionOptions options{.address = parsed->address};
  if (settings.wants_tls()) options.tls = settings.files;
  return options;
}

/// For generated stubs; only the credentials are set.
inline std::shared_ptr<grpc::Channel> channel_to(const std::string& address) {
  const client::ConnectionOptions options = connection_to(address);
  const auto credentials = client::make_credentials(options.tls);
  if (!credentials) {
    std::fprintf(stderr, "%s\n", credentials.error().text.c_str());
    std::_Exit(2);
  }
  return grpc::CreateChannel(options.address, *credentials);
}

}  // namespace baton::bench
