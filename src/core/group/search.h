#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "core/group/checker.h"

namespace baton::checker {

/// A state by its 128-bit hash: among a hundred million states, a collision is less likely than a
/// memory error.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool operator==(const Digest&) const = default;
};
struct DigestHash {
  std::size_t operator()(const Digest& digest) const noexcept { return digest.low; }
};

template <class World>
Digest digest_of(const World& world) {
  const auto bytes = hash128(world.encode());
  Digest digest;
  std::memcpy(&digest, bytes.data(), sizeof digest);
  return digest;
}

/// Visits every state that a World reaches, breadth first, so that the first failure found is one
/// of the shortest. A World is copyable; it lists the possible events (`Event`), applies them, says
/// what is wrong, and settles.
template <class World, class Options>
class Search {
 public:
  explicit Search(const Options& options) : options_(options) {}

  SearchResult run() {
    add(World(options_), 0, {});
    while (!failed() && !next_.empty()) {
      std::vector<std::pair<std::uint32_t, World>> level = std::exchange(next_, {});
      for (auto& [number, world] : level) {
        expand(number, world);
        if (failed()) return std::move(result_);
      }
      if (!next_.empty()) ++result_.depth;
    }
    return std::move(result_);
  }

 private:
  using Event = typename World::Event;
  struct Step {
    std::uint32_t from = 0;
    Event event;
  };

  [[nodiscard]] bool failed() const { return result_.failure.has_value(); }

  void expand(std::uint32_t number, const World& world) {
    std::vector<Event> events;
    world.enabled(events);
    for (const Event& event : events) {
      World after = world;
      after.happen(event);
      ++result_.transitions;
      add(std::move(after), number, event);
      if (failed()) return;
    }
  }

  void add(World world, std::uint32_t from, const Event& event) {
    if (!seen_.insert(digest_of(world)).second) return;
    const auto number = static_cast<std::uint32_t>(steps_.size());
    steps_.push_back({from, event});
    ++result_.states;
    if (result_.states > options_.states_max) return fail("there are too many states", number, {});
    if (const auto wrong = world.violation()) return fail(*wrong, number, {});
    for (const bool heal : {false, true}) {
      if (heal && !world.has_cut()) continue;
      const auto wrong = World(world).settle(heal);
      if (!wrong.has_value()) continue;
      std::vector<Event> course;
      World(world).settle(heal, &course);
      return fail(*wrong, number, course);
    }
    next_.emplace_back(number, std::move(world));
  }

  /// `course` is how things settled after that state, when that is what failed.
  void fail(std::string what, std::uint32_t number, const std::vector<Event>& course) {
    result_.failure = std::move(what);
    std::vector<Event> path;
    for (; number != 0; number = steps_[number].from) path.push_back(steps_[number].event);
    std::ranges::reverse(path);
    World world(options_);
    for (const Event& event : path) tell(world, event, "");
    for (const Event& event : course) tell(world, event, "settling: ");
  }

  void tell(World& world, const Event& event, std::string_view prefix) {
    world.happen(event);
    const std::string text = std::string(prefix) + to_string(event, options_);
    result_.trace.push_back(fmt::format("{:<54} {}", text, world.describe()));
  }

  const Options& options_;
  SearchResult result_;
  std::unordered_set<Digest, DigestHash> seen_;
  std::vector<Step> steps_;
  std::vector<std::pair<std::uint32_t, World>> next_;
};

}  // namespace baton::checker
