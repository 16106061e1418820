#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "sim/timeline.h"

namespace baton {

/// What happened in a run, as a hash, and as text if asked for; and the first violation. Everything
/// after a violation is ignored: the run ends at its next task.
class Trace {
 public:
  Trace(const Timeline& timeline, bool print) : timeline_(timeline), print_(print) {}

  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    add(fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (failure_.has_value()) return;
    failure_ = fmt::format("at {} us: {}", timeline_.now().ns / 1000,
                           fmt::format(format, std::forward<Args>(args)...));
    add("FAILED " + *failure_);
  }

  [[nodiscard]] bool failed() const { return failure_.has_value(); }
  [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }

 private:
  void add(const std::string& text) {
    const std::string line = fmt::format("{:>10} {}", timeline_.now().ns / 1000, text);
    hash_ = hash64(fmt::format("{:016x}{}", hash_, line));
    if (print_) fmt::print("{}\n", line);
  }

  const Timeline& timeline_;
  bool print_;
  std::uint64_t hash_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace baton
