#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::flow {

/// Distinguishes occasional poison records from a deployment that makes every record poison, which
/// must not flush a topic into the dead letters.
///
/// A record is judged twice: by the decoder, and, if the decoder accepts it, by the sink, much
/// later and with other records in between. Each judge has its own count of poison in a row, so
/// that a record counts as good only for a judge that has accepted it; for the percentage of the
/// last records both judges count together.
class StormGuard {
 public:
  enum class Judge : std::uint8_t { decoder, sink };

  struct Options {
    std::uint32_t in_a_row = 100;
    std::uint32_t of_last = 1000;
    std::uint32_t percent = 20;
  };

  explicit StormGuard(Options options) : options_(options) { reset(); }

  /// This judge accepted `count` records in a row.
  void good(Judge judge, std::size_t count);
  /// A record is about to become a dead letter. True: there are too many, and this stays so until
  /// reset(), because good records of other lanes say nothing about the bad ones.
  bool poison(Judge judge);
  /// An operator has acted: counts from zero.
  void reset();

 private:
  struct Verdicts {
    std::vector<bool> last{};  // A ring: whether each record was poison.
    std::size_t next = 0;
    std::uint64_t seen = 0;
    std::uint32_t poison = 0;  // Poison records in the ring.
    std::uint32_t row = 0;

    void add(bool is_poison);
    /// Too few records tell nothing.
    [[nodiscard]] std::uint32_t poison_of_last() const { return seen < last.size() ? 0 : poison; }
  };

  Options options_;
  std::array<Verdicts, 2> verdicts_;
  bool is_storm_ = false;
};

}  // namespace baton::flow
