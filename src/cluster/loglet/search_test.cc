// Every order in which two owners' entries, answers and readings can meet, within bounds.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cluster/loglet/acceptor.h"
#include "cluster/loglet/appender.h"
#include "cluster/loglet/entry.h"

namespace baton::loglet {
namespace {

constexpr Instant kNow{1'700'000'000'000'000'000};
constexpr std::size_t kOwners = 2;

/// How much may go wrong in one run.
struct Bounds {
  int rounds = 1;                 // Of each owner, behind its fence.
  int lost = 0;                   // Requests and answers that never arrive.
  int copies = 0;                 // Requests that arrive twice.
  int timeouts = 0;               // Of either owner.
  int short_reads = 0;            // Readings that end before the end of the log.
  std::uint64_t resolutions = 1;  // Of each owner: how often it sends again.
  bool conditional = true;
};

/// What is sent on one connection arrives in its order. An owner has another connection after it
/// was told to send again, and a copy that was delayed comes on its own.
using Line = std::uint64_t;

struct Request {
  Line line = 0;
  std::size_t owner = 0;
  std::uint64_t number = 0;
  std::uint64_t expected = 0;
  std::string bytes;
};
struct Answer {
  Line line = 0;
  std::size_t owner = 0;
  std::uint64_t number = 0;
  std::uint64_t sequence = 0;  // 0: refused.
};

/// One state of the search: a value.
struct World {
  std::vector<std::string> log;
  std::vector<Request> requests;  // On their way.
  std::vector<Answer> answers;    // On their way.
  std::vector<std::optional<Appender>> owners = std::vector<std::optional<Appender>>(kOwners);
  std::vector<std::uint64_t> first = std::vector<std::uint64_t>(kOwners);
  int timeouts = 0;
  int lost = 0;
  int copies = 0;
  int short_reads = 0;

  [[nodiscard]] std::string key() const {
    std::string key;
    for (const std::string& entry : log)
      key += entry.substr(4, 4);  // Checksums tell entries apart.
    std::map<Line, std::string> lines;
    for (const Request& one : requests) {
      lines[one.line] += fmt::format("r{}.{}.{} ", one.owner, one.number, one.expected);
    }
    for (const Answer& one : answers) {
      lines[one.line] += fmt::format("a{}.{}.{} ", one.owner, one.number, one.sequence);
    }
    for (const auto& [line, under_way] : lines) key += fmt::format("|{}: {}", line, under_way);
    for (std::size_t i = 0; i < kOwners; ++i) {
      key += fmt::format("|{} ", first[i]);
      if (owners[i].has_value()) key += owners[i]->fingerprint();
    }
    return key + fmt::format("|{} {} {} {}", timeouts, lost, copies, short_reads);
  }
};

std::string facts_of(std::size_t owner, int round) {
  return fmt::format("owner {} round {}", owner, round);
}

class Search {
 public:
  explicit Search(Bounds bounds) : bounds_(bounds) {}

  void run() {
    visit(World{});
    while (!open_.empty() && !testing::Test::HasFailure()) {
      const World world = std::move(open_.back());
      open_.pop_back();
      expand(world);
    }
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }
  [[nodiscard]] std::size_t taken_over() const { return taken_over_; }
  [[nodiscard]] std::size_t strays() const { return strays_; }

 private:
  void visit(World world) {
    if (!seen_.insert(world.key()).second) return;
    check(world);
    open_.push_back(std::move(world));
  }

  void expand(const World& world) {
    for (const auto& owner : world.owners) {
      if (owner.has_value() && owner->resolutions() > bounds_.resolutions) return finish(world);
    }
    const std::size_t before = seen_.size();
    for (std::size_t owner = 0; owner < kOwners; ++owner) act(world, owner);
    for (std::size_t i = 0; i < world.requests.size(); ++i) arrive(world, i);
    for (std::size_t i = 0; i < world.answers.size(); ++i) answer(world, i);
    if (seen_.size() == before) finish(world);
  }

  void act(const World& world, std::size_t number) {
    if (!world.owners[number].has_value()) {
      World next = world;
      begin(next, number);
      send(next, number);
      return visit(std::move(next));
    }
    read(world, number);
    if (world.timeouts < bounds_.timeouts) {
      World next = world;
      ++next.timeouts;
      next.owners[number]->tick(kNow + std::chrono::hours{1});
      send(next, number);
      visit(std::move(next));
    }
  }

  /// Reads everything, and makes its fence and all of its rounds.
  void begin(World& world, std::size_t number) const {
    Acceptor acceptor({});
    for (const std::string& bytes : world.log) acceptor.take(*decode_entry(bytes));
    Appender::Options options;
    // A round of two fragments, so that a fence can meet half of it.
    options.entry_bytes_max = kEntryHeaderBytes + 10;
    world.owners[number].emplace(options,
                                 Appender::Begin{.sequence = world.log.size(),
                                                 .read = acceptor,
                                                 .boot = acceptor.state().boot + 1 + number,
                                                 .node = static_cast<std::uint32_t>(number)});
    world.first[number] = acceptor.state().position;
    world.owners[number]->append(kNow, "fence");
    for (int round = 1; round <= bounds_.rounds; ++round) {
      world.owners[number]->append(kNow, facts_of(number, round));
    }
  }

  /// At once: a request can be on its way for any time.
  static void send(World& world, std::size_t number) {
    for (const Appender::Send& one : world.owners[number]->take_sends(kNow)) {
      const Line line = number + kOwners * world.owners[number]->resolutions();
      world.requests.push_back({line, number, one.request, one.expected, std::string(one.bytes)});
    }
  }

  void read(const World& world, std::size_t number) {
    World next = world;
    const auto wanted = next.owners[number]->take_read_request();
    if (!wanted.has_value()) return;
    for (std::uint64_t end = wanted->after; end <= world.log.size(); ++end) {
      const bool is_short = end < world.log.size();
      if (is_short && world.short_reads >= bounds_.short_reads) continue;
      World after = next;
      after.short_reads += is_short ? 1 : 0;
      std::vector<Appender::ReadEntry> entries;
      for (std::uint64_t at = wanted->after; at < end; ++at)
        entries.push_back({at + 1, world.log[at]});
      ASSERT_TRUE(after.owners[number]->take_read(entries).has_value());
      send(after, number);
      visit(std::move(after));
    }
  }

  template <class Message>
  static bool is_first(const std::vector<Message>& messages, std::size_t place) {
    return std::none_of(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(place),
                        [&](const Message& one) { return one.line == messages[place].line; });
  }

  void arrive(const World& world, std::size_t place) {
    const Request request = world.requests[place];
    if (!is_first(world.requests, place)) return;
    World next = world;
    next.requests.erase(next.requests.begin() + static_cast<std::ptrdiff_t>(place));
    if (world.lost < bounds_.lost) {
      World without = next;
      ++without.lost;
      visit(std::move(without));
    }
    const bool stored = !bounds_.conditional || request.expected == next.log.size();
    if (stored) next.log.push_back(request.bytes);
    next.answers.push_back(
        {request.line, request.owner, request.number, stored ? next.log.size() : 0});
    if (world.copies < bounds_.copies) {
      World twice = next;
      ++twice.copies;
      twice.requests.push_back(request);
      twice.requests.back().line = 1000;
      visit(std::move(twice));
    }
    visit(std::move(next));
  }

  void answer(const World& world, std::size_t place) {
    const Answer answer = world.answers[place];
    if (!is_first(world.answers, place)) return;
    World next = world;
    next.answers.erase(next.answers.begin() + static_cast<std::ptrdiff_t>(place));
    if (world.lost < bounds_.lost) {
      World without = next;
      ++without.lost;
      visit(std::move(without));
    }
    tell(next, answer);
    send(next, answer.owner);
    visit(std::move(next));
  }

  static void tell(World& world, const Answer& answer) {
    Appender& owner = *world.owners[answer.owner];
    if (answer.sequence != 0) {
      owner.answered(answer.number, answer.sequence);
    } else {
      owner.refused(answer.number);
    }
  }

  /// What an owner holds for confirmed is what every reader accepts. A reader accepts an entry for
  /// what comes before it alone, so what was accepted once stays accepted.
  void check(const World& world) {
    Acceptor acceptor({});
    std::vector<std::string> accepted{""};
    for (const std::string& bytes : world.log) {
      if (acceptor.take(*decode_entry(bytes)) == Acceptor::Verdict::round) {
        accepted.push_back(acceptor.round().facts);
      }
    }
    strays_ += acceptor.strays();
    for (std::size_t i = 0; i < kOwners; ++i) {
      if (!world.owners[i].has_value()) continue;
      for (std::uint64_t at = world.first[i]; at < world.owners[i]->confirmed(); ++at) {
        const int round = static_cast<int>(at - world.first[i]);
        ASSERT_LT(at, accepted.size()) << "confirmed, and no reader has it";
        ASSERT_EQ(accepted[at], round == 0 ? "fence" : facts_of(i, round));
      }
    }
  }

  /// Nothing goes wrong any more: every owner confirms all of its rounds, or hears that it is none.
  void finish(World world) {
    for (int i = 0; i < 50; ++i) {
      for (std::size_t number = 0; number < kOwners; ++number) {
        if (!world.owners[number].has_value()) begin(world, number);
        Appender& owner = *world.owners[number];
        owner.tick(kNow + std::chrono::hours{1});
        while (const auto wanted = owner.take_read_request()) {
          std::vector<Appender::ReadEntry> entries;
          for (std::uint64_t at = wanted->after; at < world.log.size(); ++at) {
            entries.push_back({at + 1, world.log[at]});
          }
          ASSERT_TRUE(owner.take_read(entries).has_value());
        }
        for (const Appender::Send& one : owner.take_sends(kNow)) {
          const bool stored = !bounds_.conditional || one.expected == world.log.size();
          if (stored) world.log.emplace_back(one.bytes);
          world.answers.push_back({number, number, one.request, stored ? world.log.size() : 0});
        }
        for (const Answer& answer : std::exchange(world.answers, {})) tell(world, answer);
      }
    }
    check(world);
    std::size_t finished = 0;
    for (std::size_t i = 0; i < kOwners; ++i) {
      const Appender& owner = *world.owners[i];
      const std::uint64_t all = world.first[i] + 1 + static_cast<std::uint64_t>(bounds_.rounds);
      ASSERT_TRUE(owner.fenced() || owner.confirmed() == all) << "owner " << i << " waits for ever";
      finished += owner.confirmed() == all ? 1 : 0;
    }
    ASSERT_GE(finished, 1U) << "both owners gave up";
    taken_over_ += finished == 1 ? 1 : 0;
  }

  Bounds bounds_;
  std::unordered_set<std::string> seen_;
  std::vector<World> open_;
  std::size_t taken_over_ = 0;
  std::size_t strays_ = 0;
};

void search_all(std::vector<Bounds> all, bool conditional) {
  for (Bounds& bounds : all) {
    bounds.conditional = conditional;
    Search search(bounds);
    search.run();
    EXPECT_GT(search.states(), 1000U);
    EXPECT_GT(search.taken_over(), 100U);
    EXPECT_GT(search.strays(), 100U);
  }
}

std::vector<Bounds> one_fault() { return {{}, {.lost = 1}, {.copies = 1}, {.timeouts = 1}}; }
std::vector<Bounds> two_faults() {
  return {
      {.lost = 1, .timeouts = 1}, {.copies = 1, .timeouts = 1}, {.timeouts = 1, .short_reads = 1}};
}

TEST(AppenderSearch, EveryOrderOnAnEngineWithConditions) { search_all(one_fault(), true); }
// Here every entry is stored, wherever it arrives: many more orders are possible.
TEST(AppenderSearch, EveryOrderOnAnEngineWithoutConditions) {
  search_all({{.resolutions = 0}, {.lost = 1, .resolutions = 0}}, false);
}
TEST(AppenderSearch, EveryOrderWithTwoFaults) {
  if (std::getenv("BATON_LONG") == nullptr) GTEST_SKIP() << "one minute: ./dev test --long";
  search_all(two_faults(), true);
}

}  // namespace
}  // namespace baton::loglet
