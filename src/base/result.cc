#include "base/result.h"

#include <fmt/format.h>

namespace baton {

std::string_view errc_name(Errc code) {
  switch (code) {
#define ERRC(name, number, text) \
  case Errc::name: return #name;
#include "base/errc.def"
#undef ERRC
  }
  return "unknown";
}

std::string_view errc_text(Errc code) {
  switch (code) {
#define ERRC(name, number, text) \
  case Errc::name: return text;
#include "base/errc.def"
#undef ERRC
  }
  return "an error this version does not know";
}

std::string to_string(const Error& error) {
  return fmt::format("{}: {}", errc_name(error.code), error.text);
}

}  // namespace baton
