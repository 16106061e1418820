#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "base/time.h"
#include "cluster/loglet/loglet.h"

/// What the tests of an engine need.
namespace baton::loglet {

/// An engine under test, with a log of its own.
class LogletBench {
 public:
  LogletBench() = default;
  LogletBench(const LogletBench&) = delete;
  LogletBench& operator=(const LogletBench&) = delete;
  virtual ~LogletBench() = default;

  /// A further client of the log.
  virtual std::unique_ptr<Loglet> client() = 0;
  /// Lets the engine work for a moment: until answers come, or some milliseconds pass.
  virtual void wait() = 0;
  [[nodiscard]] virtual Instant now() = 0;
};

struct LogletKind {
  std::string name;
  std::function<std::unique_ptr<LogletBench>()> make;

  friend void PrintTo(const LogletKind& kind, std::ostream* out) { *out << kind.name; }
};

}  // namespace baton::loglet
