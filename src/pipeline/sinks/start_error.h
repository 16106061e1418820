#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pipeline/flow/error_class.h"

namespace baton::pipeline {

/// What stands in the way before anything is consumed: a mistake of the config, or a sink that is
/// not there now and may be later.
inline Error start_error(std::string_view sink, const flow::SinkError& error) {
  const bool mistake = error.error_class == flow::ErrorClass::config;
  return {mistake ? Errc::failed_precondition : Errc::unavailable,
          fmt::format("{}: {}", sink, error.text)};
}

/// Among what check() did, or would do: there were no marks before.
inline bool tells_of_marks(const std::vector<std::string>& done) {
  return std::ranges::any_of(
      done, [](const std::string& line) { return line.ends_with(" table baton_marks"); });
}

}  // namespace baton::pipeline
