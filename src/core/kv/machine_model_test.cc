// Random commands against a second, simpler model: a map of the keys and the list of all changes
// there ever were, with checkpoints and restarts in between, and clients that watch, run out of
// credit, resume and fall behind. Every outcome is compared, and after every step what each watch
// has been sent. BATON_LONG=1 runs it fifty times longer.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <tuple>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/kv/machine_fixture.h"
#include "core/kv/model.h"

namespace baton::kv_test {
namespace {

constexpr KvSettings kSettings{.keys_max = 5, .history_changes_max = Model::kHistory};

/// What happens next: an action and two numbers it makes use of.
using Step = std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>;

struct Client {
  std::string prefix;
  std::optional<KvWatchId> watch;  // Absent: it does not watch now.
  Revision after;                  // Where the watch began.
  std::uint64_t credit = 0;        // Granted in all since then.
  std::vector<Seen> sent;
  Revision resume;  // Where it may go on.
};

class Comparison {
 public:
  Comparison() {
    world_.create("b", kSettings);
    for (const char* prefix : {"", "a.", "b.1"}) {
      clients_.push_back(
          {.prefix = prefix, .watch = {}, .after = {}, .credit = 0, .sent = {}, .resume = {}});
    }
  }

  void step(const Step& step) {
    const auto [action, first, second] = step;
    act(action, first, second);
    check_watches();
    check_bucket();
  }

  /// What is left is what should be.
  void finish() {
    restart();
    std::vector<KvEntry> expected;
    for (const std::string key : kKeys) {
      if (const KvEntry* entry = model_.live(key, world_.now()); entry != nullptr) {
        expected.push_back(*entry);
      }
    }
    std::vector<KvEntry> got;
    for (const KvEntryRef& entry : list("", 100).entries) got.push_back(*entry);
    RC_ASSERT(got == expected);
    check_bucket();
  }

 private:
  static constexpr std::array<const char*, 6> kKeys = {"a.1", "a.2", "a.3", "b.1", "b.2", "b.3"};

  void act(int action, std::uint8_t first, std::uint8_t second) {
    Client& client = clients_[first % clients_.size()];
    switch (action) {
      case 0:
      case 1:
      case 2: return put(first, second, std::nullopt);
      case 3:
      case 4:
      case 5: return put(first, second, expected_revision(first, second));
      case 6: return remove(first, std::nullopt);
      case 7: return remove(first, expected_revision(first, second));
      case 8: return compare(world_.get(key(first)), model_.live(key(first), world_.now()));
      case 9: return expire(first, second);
      case 10: return page(first, second);
      case 11: return world_.advance(milliseconds{200U * (first % 10U)});
      case 12: return second % 4 == 0 ? unwatch(client) : begin(client, second);
      case 13: return grant(client, second % 4U);
      case 14: return second % 5 == 0 ? recreate() : checkpoint();
      default: return restart();
    }
  }

  static std::string key(std::uint8_t number) { return kKeys[number % kKeys.size()]; }

  /// Often the right one.
  Revision expected_revision(std::uint8_t first, std::uint8_t second) {
    const auto entry = model_.keys.find(key(first));
    if (entry == model_.keys.end() || second % 4 == 0) return Revision{second / 4U % 8U};
    return entry->second.revision;
  }

  static void compare(const KvEntryRef& got, const KvEntry* expected) {
    RC_ASSERT((got == nullptr) == (expected == nullptr));
    if (expected != nullptr) RC_ASSERT(*got == *expected);
  }

  void put(std::uint8_t first, std::uint8_t second, std::optional<Revision> expected) {
    const std::string value = "v" + std::to_string(model_.revision.value);
    std::optional<Duration> ttl;
    if (second % 3 == 0) ttl = milliseconds{100U * (1U + second % 16U)};
    const auto outcome = world_.machine().put(
        {.bucket = "b", .key = key(first), .value = value, .expected = expected, .ttl = ttl},
        world_.now());
    const KvEntry* current = model_.live(key(first), world_.now());
    if (refused(outcome, expected, current)) return;
    if (current == nullptr && model_.keys.size() == kSettings.keys_max) {
      RC_ASSERT(!outcome.has_value());
      RC_ASSERT(outcome.error().code == Errc::resource_exhausted);
      return;
    }
    RC_ASSERT(outcome.has_value());
    model_.put(key(first), value, ttl.has_value() ? world_.now() + *ttl : Instant::never());
    RC_ASSERT(outcome->verdict == Verdict::done);
    RC_ASSERT(outcome->revision == model_.revision);
  }

  /// Whether the compare fails, by the model; then the outcome must say so.
  static bool refused(const Result<KvOutcome>& outcome, std::optional<Revision> expected,
                      const KvEntry* current) {
    const Revision there = current == nullptr ? Revision{} : current->revision;
    if (!expected.has_value() || *expected == there) return false;
    RC_ASSERT(outcome.has_value());
    RC_ASSERT(outcome->verdict == Verdict::refused);
    compare(outcome->current, current);
    return true;
  }

  void remove(std::uint8_t first, std::optional<Revision> expected) {
    if (expected == Revision{}) return;
    const auto outcome = world_.machine().remove(
        {.bucket = "b", .key = key(first), .expected = expected}, world_.now());
    const KvEntry* current = model_.live(key(first), world_.now());
    if (refused(outcome, expected, current)) return;
    RC_ASSERT(outcome.has_value());
    RC_ASSERT(outcome->verdict == (current == nullptr ? Verdict::unchanged : Verdict::done));
    if (current != nullptr) model_.drop(key(first), KvChange::Kind::removed);
    RC_ASSERT(outcome->revision == model_.revision);
  }

  void expire(std::uint8_t first, std::uint8_t second) {
    world_.advance(milliseconds{100U * (first % 5U)});
    const std::size_t count = 1U + second % 3U;
    world_.machine().expire(world_.now(), count);
    model_.expire(world_.now(), count);
  }

  KvPage list(const std::string& prefix, std::size_t entries) {
    return world_.list({.bucket = "b", .prefix = prefix, .after = {}, .entries_max = entries});
  }

  void page(std::uint8_t first, std::uint8_t second) {
    const std::string prefix = clients_[first % clients_.size()].prefix;
    std::vector<std::string> looked_at;
    for (const auto& [name, entry] : model_.keys) {
      if (name.starts_with(prefix)) looked_at.push_back(name);
    }
    const std::size_t limit = 1U + second % 4U;
    const bool more = looked_at.size() > limit;
    if (more) looked_at.resize(limit);
    const KvPage page = list(prefix, limit);
    std::vector<KvEntry> expected;
    for (const std::string& name : looked_at) {
      const KvEntry* entry = model_.live(name, world_.now());
      if (entry != nullptr) expected.push_back(*entry);
    }
    std::vector<KvEntry> got;
    for (const KvEntryRef& entry : page.entries) got.push_back(*entry);
    RC_ASSERT(got == expected);
    RC_ASSERT(page.next == (more ? looked_at.back() : std::string()));
    RC_ASSERT(page.revision == model_.revision);
  }

  /// Resumes where it may, or from anywhere: an old revision, or one that is yet to come.
  void begin(Client& client, std::uint8_t second) {
    unwatch(client);
    client.after = second % 4 == 3 ? Revision{second % 32U} : client.resume;
    client.credit = second % 3U;
    client.sent.clear();
    client.watch = KvWatchId{++watches_};
    const Status started = world_.machine().watch({.watch = *client.watch,
                                                   .bucket = "b",
                                                   .filter = {.text = client.prefix},
                                                   .after = client.after,
                                                   .credit = client.credit,
                                                   .session = {}});
    RC_ASSERT(started.has_value());
    started_ = client.watch;
  }
  void unwatch(Client& client) {
    if (client.watch.has_value()) world_.machine().unwatch(*client.watch);
    client.watch.reset();
  }
  void grant(Client& client, std::uint64_t credit) {
    if (!client.watch.has_value()) return;
    client.credit += credit;
    world_.machine().grant(*client.watch, credit);
  }

  void recreate() {
    RC_ASSERT(world_.machine().delete_bucket("b").has_value());
    model_.recreate();
    for (const KvWatchEffect& effect : world_.machine().take_effects()) {
      RC_ASSERT(effect.end == KvWatchEnd::bucket_deleted);
      RC_ASSERT(effect.changes.empty());
      client_of(effect.watch).watch.reset();
    }
    for (const Client& client : clients_) RC_ASSERT(!client.watch.has_value());
    world_.create("b", kSettings);
  }
  void checkpoint() {
    world_.checkpoint();
    model_.checkpointed = model_.revision;
  }
  void restart() {
    world_.restart();
    // The facts since the checkpoint are all that is left of the past.
    model_.floor = std::max(model_.floor, model_.checkpointed);
    for (Client& client : clients_) client.watch.reset();
  }

  Client& client_of(KvWatchId watch) {
    const auto client = std::ranges::find(clients_, std::optional(watch), &Client::watch);
    RC_ASSERT(client != clients_.end());
    return *client;
  }

  /// All that the watch asked for, sent or not.
  std::vector<Seen> wanted(const Client& client) {
    std::vector<Seen> all;
    for (const Seen& change : model_.changes) {
      if (change.entry.revision > client.after && change.entry.key.starts_with(client.prefix)) {
        all.push_back(change);
      }
    }
    return all;
  }

  void check_watches() {
    std::map<KvWatchId, KvWatchEffect> effects;
    for (KvWatchEffect& effect : world_.machine().take_effects()) {
      client_of(effect.watch);
      effects.emplace(effect.watch, std::move(effect));
    }
    for (Client& client : clients_) {
      if (!client.watch.has_value()) continue;
      const auto effect = effects.find(*client.watch);
      check_watch(client, effect == effects.end() ? nullptr : &effect->second);
    }
    started_.reset();
  }

  void check_watch(Client& client, const KvWatchEffect* effect) {
    const bool just_started = started_ == client.watch;
    if (just_started) RC_ASSERT(effect != nullptr);
    for (const KvChange& change : effect == nullptr ? std::vector<KvChange>() : effect->changes) {
      client.sent.push_back({change.kind, *change.entry});
    }
    const bool hopeless =
        just_started && (client.after < model_.floor || client.after > model_.revision);
    std::vector<Seen> all = hopeless ? std::vector<Seen>() : wanted(client);
    std::optional<Revision> unsent;
    if (all.size() > client.credit) unsent = all[client.credit].entry.revision;
    all.resize(std::min<std::size_t>(all.size(), client.credit));
    RC_ASSERT(client.sent == all);

    const bool fell_behind = hopeless || (unsent.has_value() && *unsent <= model_.floor);
    const bool told = effect != nullptr && effect->end == KvWatchEnd::fell_behind;
    RC_ASSERT(told == fell_behind);
    if (told) {
      // Its end names the revision of that moment, and more may have come in the same step. It
      // lists and goes on from there.
      RC_ASSERT(effect->complete_to <= model_.revision);
      client.resume = model_.revision;
      client.watch.reset();
    } else if (effect != nullptr) {
      client.resume = unsent.has_value() ? Revision{unsent->value - 1} : model_.revision;
      RC_ASSERT(effect->complete_to == client.resume);
    }
  }

  void check_bucket() {
    const auto bucket = world_.machine().describe("b");
    RC_ASSERT(bucket.has_value());
    RC_ASSERT(bucket->revision == model_.revision);
    RC_ASSERT(bucket->history_floor == model_.floor);
    RC_ASSERT(bucket->keys == model_.keys.size());
    std::uint64_t bytes = 0;
    for (const auto& [name, entry] : model_.keys) bytes += name.size() + entry.value.size();
    RC_ASSERT(bucket->bytes == bytes);
    RC_ASSERT(world_.machine().totals().bytes == bytes);
    RC_ASSERT(world_.machine().totals().keys == model_.keys.size());
    RC_ASSERT(world_.machine().next_deadline() == model_.next_deadline());
  }

  World world_;
  Model model_;
  std::vector<Client> clients_;
  std::uint64_t watches_ = 0;
  std::optional<KvWatchId> started_;
};

void run(const std::vector<Step>& steps) {
  Comparison comparison;
  for (const Step& step : steps) comparison.step(step);
  comparison.finish();
}

TEST(KvModel, RandomCommandsAndRestartsAgreeWithAMapAndAListOfChanges) {
  const bool is_long = std::getenv("BATON_LONG") != nullptr;
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = is_long ? 100'000 : 2'000;
  params.maxSize = 150;
  if (!is_long) params.seed = 1;
  const rc::detail::TestResult result = rc::detail::checkTestable(
      [] {
        const auto number = rc::gen::inRange<std::uint8_t>(0, 60);
        run(*rc::gen::container<std::vector<Step>>(
            rc::gen::tuple(rc::gen::inRange<std::uint8_t>(0, 16), number, number)));
      },
      rc::detail::TestMetadata{}, params);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << text.str();
}

}  // namespace
}  // namespace baton::kv_test
