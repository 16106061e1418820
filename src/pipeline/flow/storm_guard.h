#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::flow {

/// Tells a poison record now and then from a deployment that makes every record poison: that must
/// not flush a topic into the dead letters.
///
/// A record is judged twice: by the decoder, and, if it came through, by the sink, much later and
/// with others in between. Each judge has a row of its own, so that a record counts as good for one
/// only once that one has said so; of the last records, both count together.
class StormGuard {
 public:
  enum class Judge : std::uint8_t { decoder, sink };

  struct Options {
    std::uint32_t in_a_row = 100;
    std::uint32_t of_last = 1000;
    std::uint32_t percent = 20;
  };

  explicit StormGuard(Options options) : options_(options) { reset(); }

  /// So many records, one after the other, are no poison.
  void good(Judge judge, std::size_t count);
  /// A record is about to be a dead letter. True: too many are, and so until reset(): what others
  /// write meanwhile is no news of these.
  bool poison(Judge judge);
  /// An operator has looked: counts from zero.
  void reset();

 private:
  struct Verdicts {
    std::vector<bool> last{};  // A ring: was it poison?
    std::size_t next = 0;
    std::uint64_t seen = 0;
    std::uint32_t poison = 0;  // In the ring.
    std::uint32_t row = 0;

    void add(bool is_poison);
    /// Too few tell nothing.
    [[nodiscard]] std::uint32_t poison_of_last() const { return seen < last.size() ? 0 : poison; }
  };

  Options options_;
  std::array<Verdicts, 2> verdicts_;
  bool is_storm_ = false;
};

}  // namespace baton::flow
