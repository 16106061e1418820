#include <algorithm>
#include <array>
#include <chrono>
#include <latch>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "worker/stores/deadline.h"
#include "worker/stores/kv_store.h"
#include "worker/stores/limits.h"

namespace baton::coord {
namespace {

// Should the process die in the middle, a store that can forget forgets the scratch key by itself.
constexpr std::chrono::minutes kScratchTtl{1};

std::string scratch_key() {
  std::random_device device;
  return fmt::format("_selftest.{:08x}{:08x}{:08x}", device(), device(), device());
}

/// One key, and threads that race for it. Each round all of them expect the same revision.
class Race {
 public:
  Race(KvStore& store, Duration timeout) : store_(store), deadline_(timeout) {}

  Status run() {
    // A key that was removed and is made again is a case of its own in some stores.
    for (int life = 0; life < 2; ++life) {
      for (int round = 0; round < limits::kRaceRounds; ++round) BATON_TRY_STATUS(race_to_write());
      BATON_TRY_STATUS(race_to_remove());
    }
    return {};
  }

  /// Settings of a bucket or a server may allow less than what is to be written.
  Status write_large(std::size_t bytes) {
    const std::string value(bytes, 'x');
    const auto written = store_.cas(key_, revision_, value, kScratchTtl, deadline_.left());
    if (!written) return too_large(bytes, written.error());
    BATON_TRY(const auto entry, store_.get(key_, deadline_.left()));
    if (!written->done || !entry || entry->value != value) {
      return Error{Errc::failed_precondition,
                   fmt::format("{} is not fit for leases: it does not show a value of {} bytes "
                               "that was just written",
                               store_.name(), bytes)};
    }
    revision_ = written->revision;
    return race_to_remove();
  }

  /// Leaves nothing behind, as far as the store lets it.
  void clean_up() {
    const auto found = store_.get(key_, kCleanUpTimeout);
    if (!found) return;
    const std::optional<StoredEntry>& entry = *found;
    if (entry) (void)store_.remove(key_, entry->revision, kCleanUpTimeout);
  }

 private:
  static constexpr std::chrono::seconds kCleanUpTimeout{1};
  using Outcomes = std::array<Result<CasOutcome>, limits::kRacers>;

  static std::string value_of(std::size_t racer) { return fmt::format("racer {}", racer); }

  template <class Attempt>
  static Outcomes race(Attempt attempt) {
    Outcomes outcomes{};
    std::latch start(limits::kRacers);
    std::vector<std::jthread> racers;
    racers.reserve(limits::kRacers);
    for (std::size_t i = 0; i < limits::kRacers; ++i) {
      racers.emplace_back([&, i] {
        start.arrive_and_wait();
        outcomes[i] = attempt(i);
      });
    }
    racers.clear();  // Joins them.
    return outcomes;
  }

  [[nodiscard]] Error too_large(std::size_t bytes, const Error& error) const {
    const bool refused =
        error.code == Errc::invalid_argument || error.code == Errc::resource_exhausted;
    return {refused ? Errc::failed_precondition : error.code,
            fmt::format("{} cannot hold a value of {} bytes, and documents of leases get so large: "
                        "{}",
                        store_.name(), bytes, error.text)};
  }

  /// The number of the only winner.
  Result<std::size_t> winner(const Outcomes& outcomes, std::string_view what) {
    std::size_t won = 0;
    std::size_t winners = 0;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (!outcomes[i]) return outcomes[i].error();
      if (!outcomes[i]->done) continue;
      won = i;
      ++winners;
    }
    if (winners == 1) return won;
    return Error{Errc::failed_precondition,
                 fmt::format("{} is not fit for leases: of {} racing {} {} had success, and one "
                             "should",
                             store_.name(), outcomes.size(), what, winners)};
  }

  Status race_to_write() {
    const Outcomes outcomes = race([&](std::size_t i) {
      return store_.cas(key_, revision_, value_of(i), kScratchTtl, deadline_.left());
    });
    for (const auto& outcome : outcomes) {
      if (outcome && outcome->done) revision_ = outcome->revision;
    }
    BATON_TRY(const std::size_t won, winner(outcomes, "compare-and-sets"));
    BATON_TRY(const auto entry, store_.get(key_, deadline_.left()));
    if (entry && entry->revision == revision_ && entry->value == value_of(won)) return {};
    return Error{Errc::failed_precondition,
                 fmt::format("{} is not fit for leases: it does not show what was just written",
                             store_.name())};
  }

  Status race_to_remove() {
    const Outcomes outcomes =
        race([&](std::size_t) { return store_.remove(key_, revision_, deadline_.left()); });
    BATON_TRY_STATUS(winner(outcomes, "removals"));
    revision_ = 0;
    BATON_TRY(const auto entry, store_.get(key_, deadline_.left()));
    if (!entry) return {};
    return Error{
        Errc::failed_precondition,
        fmt::format("{} is not fit for leases: it shows what was just removed", store_.name())};
  }

  KvStore& store_;
  Deadline deadline_;
  std::string key_ = scratch_key();
  KvRevision revision_ = 0;
};

}  // namespace

Status self_test(KvStore& store, Duration timeout, std::size_t value_bytes) {
  Race race(store, timeout);
  Status status = race.run();
  if (status && value_bytes > 0) status = race.write_large(value_bytes);
  if (!status) race.clean_up();
  return status;
}

}  // namespace baton::coord
