#pragma once

#include <string_view>

#include <fmt/format.h>

#include "base/result.h"
#include "pipeline/flow/error_class.h"

namespace baton::pipeline {

/// An error before anything is consumed: a mistake in the config, or a sink that is unavailable for
/// now.
inline Error start_error(std::string_view sink, const flow::SinkError& error) {
  const bool mistake = error.error_class == flow::ErrorClass::config;
  return {mistake ? Errc::failed_precondition : Errc::unavailable,
          fmt::format("{}: {}", sink, error.text)};
}

}  // namespace baton::pipeline
