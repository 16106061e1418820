#include "pipeline/flow/error_class.h"

#include <array>
#include <utility>

namespace baton::flow {

std::string_view to_string(ErrorClass error_class) {
  static constexpr std::array<std::string_view, kErrorClasses> kNames = {
      "outage", "retry", "config", "poison", "duplicate", "unknown", "fenced"};
  return kNames.at(std::to_underlying(error_class));
}

SinkError while_connecting(SinkError error) {
  const bool known =
      error.error_class == ErrorClass::config || error.error_class == ErrorClass::retry;
  if (!known) error.error_class = ErrorClass::outage;
  error.halve_batch = false;
  return error;
}

}  // namespace baton::flow
