#pragma once

#include <baton/connection.h>
#include <baton/result.h>

#include "base/result.h"
#include "sdk/base/channel.h"

namespace baton::pipeline {

/// The SDK's numbers are the broker's.
inline Error from_client(const client::Error& error) {
  return {static_cast<Errc>(error.code), error.text};
}

/// With what is behind it, if the connection failed. May take two seconds.
inline Error from_client(const client::ConnectionOptions& connection, const client::Error& error) {
  return from_client(client::explain(connection, error));
}

}  // namespace baton::pipeline
