#include "base/result.h"

#include <fmt/format.h>

namespace baton {
namespace {

constexpr std::string_view kUnknown = "unknown";

}  // namespace

std::string_view errc_name(Errc code) {
  switch (code) {
#define ERRC(name, number, text) \
  case Errc::name: return #name;
#include <baton/errc.def>
#undef ERRC
  }
  return kUnknown;
}

std::string_view errc_text(Errc code) {
  switch (code) {
#define ERRC(name, number, text) \
  case Errc::name: return text;
#include <baton/errc.def>
#undef ERRC
  }
  return "an error this version does not know";
}

std::string to_string(const Error& error) {
  if (error.name() == kUnknown) return error.text;  // Which begins with the broker's name for it.
  return fmt::format("{}: {}", error.name(), error.text);
}

}  // namespace baton
