#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"

namespace baton::flow {

/// What an error of a sink means for the records that met it.
enum class ErrorClass : std::uint8_t {
  outage,     // The sink is not there: keep the batch, wait, lose nothing.
  retry,      // It passes by itself: again, in place.
  config,     // Every record would fail: stop and say so.
  poison,     // This record, once alone, will never go in: dead letter.
  duplicate,  // It is in already: success.
  unknown,    // Alone it gets a few attempts, and is then poison.
  fenced,     // The partition is another worker's by now: stop writing for it.
};
inline constexpr std::size_t kErrorClasses = 7;
std::string_view to_string(ErrorClass error_class);

/// What a sink says of a failure.
struct SinkError {
  ErrorClass error_class = ErrorClass::unknown;
  std::string code{};  // In the words of the sink, an SQLSTATE, say; empty: there was none.
  std::string text{};
  bool halve_batch = false;  // It may pass with fewer records.
  Duration retry_after{};    // The sink asks to be left alone for so long.
};

/// What an error means that came while connecting: no record was sent, so that none is to blame.
SinkError while_connecting(SinkError error);

}  // namespace baton::flow
