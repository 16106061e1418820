#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"

namespace baton::flow {

/// What an error of a sink means for the records of the call.
enum class ErrorClass : std::uint8_t {
  outage,     // The sink is unavailable: keep the batch, wait, lose nothing.
  retry,      // The error passes by itself: retry in place.
  config,     // Every record would fail: stop and report.
  poison,     // This record, once alone, can never be written: dead letter.
  duplicate,  // The record is already there: success.
  unknown,    // Alone, the record gets a few attempts, and is then poison.
  fenced,     // Another worker has the partition by now: stop writing for it.
};
inline constexpr std::size_t kErrorClasses = 7;
std::string_view to_string(ErrorClass error_class);

/// A sink's description of a failure.
struct SinkError {
  ErrorClass error_class = ErrorClass::unknown;
  std::string code{};  // The sink's own code, for example an SQLSTATE; empty if there is none.
  std::string text{};
  bool halve_batch = false;  // The write may succeed with fewer records.
  Duration retry_after{};    // The sink asks not to be called for this long.
};

/// The meaning of an error while connecting: no record was sent, so no record is the cause.
SinkError while_connecting(SinkError error);

}  // namespace baton::flow
