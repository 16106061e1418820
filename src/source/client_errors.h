#pragma once

#include <baton/result.h>

#include "base/result.h"

namespace baton::pipeline {

/// The SDK's numbers are the broker's.
inline Error from_client(const client::Error& error) {
  return {static_cast<Errc>(error.code), error.text};
}

}  // namespace baton::pipeline
