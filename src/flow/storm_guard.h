#pragma once

#include <cstdint>
#include <vector>

namespace baton::flow {

/// Tells a poison record now and then from a deployment that makes every record poison: that must
/// not flush a topic into the dead letters.
class StormGuard {
 public:
  struct Options {
    std::uint32_t in_a_row = 100;
    std::uint32_t of_last = 1000;
    std::uint32_t percent = 20;
  };

  explicit StormGuard(Options options) : options_(options), last_(options.of_last) {}

  /// A record is about to be a dead letter (or is not). True: too many are.
  bool record(bool poison);
  /// An operator has looked: counts from zero.
  void reset();

 private:
  Options options_;
  std::vector<bool> last_;  // A ring.
  std::size_t next_ = 0;
  std::uint64_t seen_ = 0;
  std::uint32_t poison_ = 0;  // In the ring.
  std::uint32_t row_ = 0;
};

}  // namespace baton::flow
