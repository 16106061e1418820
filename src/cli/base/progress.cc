#include "cli/base/progress.h"

#include <fmt/format.h>

#include "cli/base/output.h"

namespace baton::cli {
namespace {

constexpr std::chrono::milliseconds kProgressEvery{500};

}  // namespace

std::string Progress::add(Clock::time_point now) {
  ++done_;
  if (!on_ || now - last_ < kProgressEvery) return {};
  last_ = now;
  shown_ = true;
  return total_ ? fmt::format("{} of {}", format_count(done_), format_count(*total_))
                : format_count(done_);
}

void Progress::show(std::string_view done) {
  const std::string far = add(Clock::now());
  if (!far.empty()) fmt::print(stderr, "\r{} {}\x1b[K", far, done);
}

void Progress::clear() const {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace baton::cli
