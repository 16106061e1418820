// Random commands against a second, simpler model made of plain vectors, with checkpoints, clean
// stops and crashes in between, a memory budget that spills nearly everything, and refills that
// come late. Every outcome is compared, and all counts are compared after every step. BATON_LONG=1
// runs it fifty times longer.
//
// More than 500 lines: the model and the commands that drive it belong together.

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/queue/machine_fixture.h"

namespace baton::machine_test {
namespace {

constexpr std::uint32_t kMaxAttempts = 3;
constexpr Duration kVisibility = seconds{20};
constexpr Duration kRetry = seconds{4};

/// The next step: an action and two numbers that the action uses.
using Step = std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>;

enum class State : std::uint8_t { ready, leased, delayed, dead, gone };
enum class Work : std::uint8_t { unknown, begun, idle };
enum class Parting : std::uint8_t { unwritten, orderly, dead };

struct Known {
  Uuid id;
  std::string key;
  std::string payload;
  State state = State::ready;
  // Its rank among the ready messages of its key, or among the dead letters.
  std::uint64_t order = 0;
  std::uint32_t attempts = 0;
  Instant due;
  LeaseToken token;
  Instant deadline;
  std::string holder;
  Work work = Work::unknown;
  bool redriven = false;
};

struct Client {
  std::string id;
  std::optional<ConsumerNumber> number;
  std::size_t in_flight_max = 0;
  std::uint32_t concurrency = 1;
  bool marks = false;
};

QueueMachine::Options tiny() {
  QueueMachine::Options options;
  options.payload_budget_bytes = 200;
  options.refill_rows = 2;
  options.delayed_horizon = seconds{8};
  return options;
}

class Comparison {
 public:
  Comparison() : world_(tiny()) {
    for (const char* id : {"a", "b", "c"}) clients_.push_back({.id = id, .number = {}});
    create();
  }

  void step(const Step& step) {
    const auto [action, first, second] = step;
    world_.facts.clear();
    act(action % 20, first, second);
    settle();
    compare_counts();
  }

  /// All messages that should be left are delivered, in order, and no others.
  void finish() {
    world_.refills_by_hand = false;
    for (Client& client : clients_) {
      world_.facts.clear();
      detach(client, Parting::dead);
    }
    for (int i = 0; i < 40; ++i) advance(seconds{10});
    compare_counts();
    std::map<std::string, std::vector<std::string>> expected;
    for (const Known* known : sorted(State::ready)) expected[known->key].push_back(known->payload);
    std::map<std::string, std::vector<std::string>> got;
    const ConsumerNumber last = world_.attach("q", "last", 100'000);
    for (const Delivery& delivery : world_.take(last)) {
      got[std::string(delivery.message->fairness_key())].emplace_back(delivery.message->payload());
    }
    RC_ASSERT(got == expected);
    std::set<std::string> dead;
    for (const Known* known : sorted(State::dead)) dead.insert(known->payload);
    std::set<std::string> buried;
    if (!world_.machine().list("q.dlq").empty()) {
      for (const std::string& payload : world_.drain("q.dlq")) buried.insert(payload);
    }
    RC_ASSERT(buried == dead);
    RC_ASSERT(world_.rows_missing == 0U);
  }

 private:
  void act(int action, std::uint8_t first, std::uint8_t second) {
    Client& client = clients_[first % clients_.size()];
    switch (action) {
      case 0:
      case 1:
      case 2:
      case 3: return enqueue(first, second);
      case 4:
      case 5: return attach(client, 1U + second % 4U);
      case 6: return detach(client, static_cast<Parting>(second % 3));
      case 7:
      case 8: return ack(first);
      case 9:
      case 10: return nack(first, second);
      case 11: return second % 2 == 0 ? extend(first, second) : begin(first);
      case 12: return stale(first);
      case 13: return advance(seconds{1U + first % 12U});
      case 14: return cancel(first);
      case 15: return second % 4 == 0 ? purge() : checkpoint(second);
      case 16: return checkpoint(second);
      case 17: return restart(second % 3 == 0);
      case 18: return second % 8 == 0 ? recreate() : redrive();
      default: world_.refills_by_hand = second % 2 == 0; return;
    }
  }

  void create() {
    QueueSettingsPatch settings;
    settings.attempts_max = kMaxAttempts;
    settings.visibility_timeout = kVisibility;
    settings.retry_delay = kRetry;
    world_.create("q", settings);
  }

  void enqueue(std::uint8_t first, std::uint8_t second) {
    for (int i = 0; i <= second % 3; ++i) {
      NewMessage made = message("m" + std::to_string(known_.size()));
      made.fairness_key = std::string(1, static_cast<char>('x' + first % 3));
      // Sometimes due soon, sometimes beyond the horizon.
      if (first % 5 == 0) made.delay = seconds{1U + second % 15U};
      const EnqueueOutcome outcome = world_.send("q", made);
      RC_ASSERT(!outcome.error.has_value());
      Known known;
      known.id = outcome.id;
      known.key = made.fairness_key;
      known.payload = made.payload;
      if (made.delay > Duration{0}) {
        known.state = State::delayed;
        known.due = world_.now() + made.delay;
      } else {
        known.order = ++order_;
      }
      known_.push_back(known);
    }
  }

  void attach(Client& client, std::uint32_t in_flight_max) {
    if (client.number.has_value()) judge(client, false);
    client.concurrency = 1 + in_flight_max / 3;
    client.number = world_.attach("q", client.id, in_flight_max, client.concurrency);
    client.in_flight_max = in_flight_max;
    client.marks = false;
  }

  void begin(std::uint8_t which) {
    Known* known = pick(State::leased, which);
    if (known == nullptr) return;
    for (Client& client : clients_) {
      if (!client.number.has_value()) continue;
      // A consumer must not mark a message that another one holds.
      world_.run(BegunCommand{.queue = "q", .consumer = *client.number, .tokens = {known->token}});
      client.marks = true;
      if (client.id == known->holder) known->work = Work::begun;
    }
  }

  /// The oldest message counts, unless it is known which ones were begun.
  void judge(const Client& client, bool orderly) {
    const std::vector<Known*> held = held_by(client.id);
    const auto begun = std::ranges::count(held, Work::begun, &Known::work);
    for (std::size_t i = 0; i < held.size(); ++i) {
      const bool guessed = begun == 0 && i < client.concurrency;
      const bool counts = !orderly && (guessed || held[i]->work == Work::begun);
      held[i]->work = counts ? Work::begun : Work::idle;
    }
  }

  void detach(Client& client, Parting parting) {
    if (!client.number.has_value()) return;
    std::vector<LeaseToken> never_sent;
    for (Known* known : held_by(client.id)) {
      if (parting == Parting::unwritten) never_sent.push_back(known->token);
    }
    const bool orderly = parting != Parting::dead;
    judge(client, orderly);
    world_.run(DetachCommand{.queue = "q",
                             .consumer = *std::exchange(client.number, std::nullopt),
                             .unwritten = never_sent,
                             .orderly = parting == Parting::orderly});
    for (Known* known : held_by(client.id)) end(*known, known->work == Work::begun, std::nullopt);
  }

  void ack(std::uint8_t which) {
    Known* known = pick(State::leased, which);
    if (known == nullptr) return;
    RC_ASSERT(!world_.ack("q", known->token).has_value());
    past_.push_back(known->token);
    known->state = State::gone;
  }

  void nack(std::uint8_t which, std::uint8_t how) {
    Known* known = pick(State::leased, which);
    if (known == nullptr) return;
    Retry retry;
    std::optional<Instant> due;
    if (how % 4 == 0) retry.kind = Retry::Kind::release;
    if (how % 4 == 1) retry.kind = Retry::Kind::after;
    if (how % 4 == 2) {
      retry = {.kind = Retry::Kind::after, .delay = seconds{1U + how % 20U}};
      due = world_.now() + retry.delay;
    }
    RC_ASSERT(!world_.nack("q", known->token, retry).has_value());
    if (how % 4 == 3 && known->attempts + 1 < kMaxAttempts) due = backoff(known->attempts + 1);
    end(*known, how % 4 != 0, due);
  }

  /// The random moment that the machine chose, which must lie within the bounds.
  Instant backoff(std::uint32_t attempts) {
    RC_ASSERT(world_.facts.size() == 1U);
    const auto& ended = std::get<Ended>(world_.facts.front());
    return within_backoff(ended, attempts);
  }
  Instant within_backoff(const Ended& ended, std::uint32_t attempts) {
    RC_ASSERT(ended.due.has_value());
    const Duration wait = *ended.due - world_.now();
    const Duration most = kRetry * (1 << (attempts - 1));
    RC_ASSERT(wait >= most / 2 && wait <= most);
    return *ended.due;
  }

  void extend(std::uint8_t which, std::uint8_t by) {
    Known* known = pick(State::leased, which);
    if (known == nullptr) return;
    const Duration timeout = seconds{1U + by % 40U};
    RC_ASSERT(!world_.extend("q", known->token, timeout).has_value());
    known->deadline = world_.now() + timeout;
  }

  void stale(std::uint8_t which) {
    if (past_.empty()) return;
    const LeaseToken token = past_[which % past_.size()];
    RC_ASSERT(world_.ack("q", token)->code == Errc::lease_lost);
    RC_ASSERT(world_.nack("q", token)->code == Errc::lease_lost);
    RC_ASSERT(world_.extend("q", token)->code == Errc::lease_lost);
  }

  void cancel(std::uint8_t which) {
    if (known_.empty()) return;
    Known& known = known_[which % known_.size()];
    // The message was spilled under an id that the queue had before. Its row in `ids` may have been
    // erased by the checkpoint of its earlier state, and a message that is only a row is not found
    // by its id then.
    if (known.redriven || (known.state == State::delayed && known.attempts > 0)) return;
    const ItemOutcome outcome = world_.cancel("q", known.id);
    if (known.state == State::gone || known.state == State::dead) {
      RC_ASSERT(outcome.has_value());
      RC_ASSERT(outcome->code == Errc::message_not_found);
      return;
    }
    RC_ASSERT(!outcome.has_value());
    if (known.state == State::leased) past_.push_back(known.token);
    known.state = State::gone;
  }

  void purge() {
    const auto waiting = count(State::ready) + count(State::delayed);
    RC_ASSERT(world_.run(PurgeCommand{.queue = "q", .error = {}}).purged == waiting);
    for (Known& known : known_) {
      if (known.state == State::ready || known.state == State::delayed) known.state = State::gone;
    }
  }

  void redrive() {
    if (world_.machine().list("q.dlq").empty()) return;
    RedriveCommand command;
    command.queue = "q.dlq";
    RC_ASSERT(world_.run(command).moved == count(State::dead));
    for (Known* known : sorted(State::dead)) {
      known->state = State::ready;
      known->order = ++order_;
      known->attempts = 0;
      known->redriven = true;
    }
  }

  void recreate() {
    RC_ASSERT(!world_.run(DeleteQueueCommand{.queue = "q", .error = {}}).error.has_value());
    for (Known& known : known_) {
      if (known.state == State::leased) past_.push_back(known.token);
      if (known.state != State::dead) known.state = State::gone;
    }
    for (Client& client : clients_) client.number.reset();
    create();
  }

  void checkpoint(std::uint8_t how) {
    if (world_.has_sealed()) return world_.commit();
    how % 2 == 0 ? world_.seal() : world_.checkpoint();
  }

  void restart(bool clean) {
    clean ? world_.restart() : world_.crash();
    for (Client& client : clients_) client.number.reset();
    for (Known& known : known_) known.work = Work::unknown;
    orphans_until_.reset();
    if (count(State::leased) != 0) orphans_until_ = world_.now() + seconds{5};
  }

  /// Late rows would also make time pass late in the model, so they are brought first.
  void advance(Duration by) {
    world_.refills_by_hand = false;
    settle();
    world_.advance(by);
    settle();
  }

  /// What follows from the time and from room in flight, in the order in which the machine does it.
  void settle() {
    if (world_.refills_by_hand) world_.bring_refills();
    world_.settle();
    if (world_.refills_by_hand) world_.read_refills();
    if (orphans_until_.has_value() && *orphans_until_ <= world_.now()) {
      orphans_until_.reset();
      for (Known* known : held_before(world_.boots())) {
        if (!connected(known->holder)) end(*known, false, std::nullopt);
      }
    }
    expire_leases();
    for (Known* known : due()) {
      known->state = State::ready;
      known->order = ++order_;
    }
    take_deliveries();
    world_.facts.clear();
  }

  void expire_leases() {
    std::vector<Known*> expired;
    for (Known& known : known_) {
      if (known.state == State::leased && known.deadline <= world_.now()) expired.push_back(&known);
    }
    std::ranges::sort(expired, {},
                      [](const Known* known) { return std::pair(known->deadline, known->token); });
    for (Known* known : expired) {
      const Client& holder = *std::ranges::find(clients_, known->holder, &Client::id);
      const bool unmarked = holder.number.has_value() && !holder.marks;
      if (known->work == Work::idle || (known->work == Work::unknown && !unmarked)) {
        end(*known, false, std::nullopt);
        continue;
      }
      std::optional<Instant> due;
      for (const QueueFact& fact : world_.facts) {
        const auto* const ended = std::get_if<Ended>(&fact);
        if (ended != nullptr && ended->token == known->token) {
          due = within_backoff(*ended, known->attempts + 1);
        }
      }
      end(*known, true, due);
    }
  }

  /// In the order in which leases were granted, over all consumers.
  void take_deliveries() {
    std::vector<std::pair<Delivery, const Client*>> all;
    for (const Client& client : clients_) {
      if (!client.number.has_value()) continue;
      for (Delivery& got : world_.take(*client.number)) all.emplace_back(std::move(got), &client);
    }
    std::ranges::sort(all, {}, [](const auto& entry) { return entry.first.token; });
    for (const auto& [got, client] : all) take(got, *client);
  }

  void take(const Delivery& got, const Client& client) {
    Known* known = find(got.message->id());
    RC_ASSERT(known != nullptr);
    RC_ASSERT(known->state == State::ready);
    for (const Known* other : sorted(State::ready)) {
      RC_ASSERT(other->key != known->key || other->order >= known->order);
    }
    RC_ASSERT(got.message->payload() == known->payload);
    RC_ASSERT(got.attempt == known->attempts + 1);
    RC_ASSERT(got.deadline == world_.now() + kVisibility);
    RC_ASSERT(tokens_.insert(got.token).second);
    RC_ASSERT(held_by(client.id).size() < client.in_flight_max);
    known->state = State::leased;
    known->token = got.token;
    known->deadline = got.deadline;
    known->holder = client.id;
    known->work = Work::unknown;
  }

  void end(Known& known, bool counted, std::optional<Instant> due) {
    past_.push_back(known.token);
    if (counted) ++known.attempts;
    if (counted && known.attempts >= kMaxAttempts) {
      known.state = State::dead;
      known.order = place_among_dead(known.token);
    } else if (due.has_value()) {
      known.state = State::delayed;
      known.due = *due;
    } else {
      known.state = State::ready;  // At its old place.
    }
  }

  /// Leases that end at the same time may end in any order; the facts tell in which.
  std::uint64_t place_among_dead(LeaseToken token) {
    for (const QueueFact& fact : world_.facts) {
      const auto* const dead = std::get_if<DeadLettered>(&fact);
      if (dead != nullptr && dead->token == token) return dead->sequence.value;
    }
    RC_FAIL("not dead-lettered");
  }

  void compare_counts() {
    const QueueStats stats = world_.stats("q");
    RC_ASSERT(stats.ready == count(State::ready));
    RC_ASSERT(stats.leased == count(State::leased));
    RC_ASSERT(stats.delayed == count(State::delayed));
    RC_ASSERT(world_.rows_missing == 0U);
    if (world_.refills_by_hand) return;
    // Every consumer with room has been served.
    bool room = false;
    for (const Client& client : clients_) {
      room =
          room || (client.number.has_value() && held_by(client.id).size() < client.in_flight_max);
    }
    RC_ASSERT(!room || stats.ready == 0U);
  }

  [[nodiscard]] std::uint64_t count(State state) const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(known_, [&](const Known& known) { return known.state == state; }));
  }
  Known* find(Uuid id) {
    const auto found = std::ranges::find(known_, id, &Known::id);
    return found == known_.end() ? nullptr : &*found;
  }
  Known* pick(State state, std::uint8_t which) {
    const std::vector<Known*> all = sorted(state);
    return all.empty() ? nullptr : all[which % all.size()];
  }
  std::vector<Known*> sorted(State state) {
    std::vector<Known*> all;
    for (Known& known : known_) {
      if (known.state == state) all.push_back(&known);
    }
    std::ranges::sort(all, {}, [](const Known* known) { return known->order; });
    return all;
  }
  std::vector<Known*> held_by(const std::string& holder) {
    std::vector<Known*> held = sorted(State::leased);
    std::erase_if(held, [&](const Known* known) { return known->holder != holder; });
    std::ranges::sort(held, {}, [](const Known* known) { return known->token; });
    return held;
  }
  std::vector<Known*> held_before(std::uint64_t boot) {
    std::vector<Known*> held = sorted(State::leased);
    std::erase_if(held, [&](const Known* known) { return known->token.boot == boot; });
    return held;
  }
  std::vector<Known*> due() {
    std::vector<Known*> all = sorted(State::delayed);
    std::erase_if(all, [&](const Known* known) { return known->due > world_.now(); });
    std::ranges::sort(all, {}, [](const Known* known) { return std::pair(known->due, known->id); });
    return all;
  }
  [[nodiscard]] bool connected(const std::string& id) const {
    return std::ranges::any_of(clients_, [&](const Client& client) {
      return client.id == id && client.number.has_value();
    });
  }

  World world_;
  std::vector<Known> known_;
  std::vector<Client> clients_;
  std::vector<LeaseToken> past_;
  std::set<LeaseToken> tokens_;
  std::uint64_t order_ = 0;
  std::optional<Instant> orphans_until_;
};

// A failed assertion of the machine ends the process, so rapidcheck cannot shrink: BATON_TRACE=1
// prints the steps.
void trace(const std::vector<Step>& steps) {
  if (std::getenv("BATON_TRACE") == nullptr) return;
  std::string text;
  for (const auto& [action, first, second] : steps) {
    text += fmt::format("{{{}, {}, {}}}, ", action, first, second);
  }
  fmt::print(stderr, "{}\n\n", text);
}

void run(const std::vector<Step>& steps) {
  trace(steps);
  Comparison comparison;
  for (const Step& step : steps) comparison.step(step);
  comparison.finish();
}

// BATON_REPLAY names a file with the numbers of such a trace.
TEST(MachineModel, AListOfStepsFromAFileIsReplayed) {
  const char* const path = std::getenv("BATON_REPLAY");
  if (path == nullptr) GTEST_SKIP() << "BATON_REPLAY is not set";
  std::vector<Step> steps;
  std::ifstream file(path);
  int action = 0;
  int first = 0;
  int second = 0;
  while (file >> action >> first >> second) steps.emplace_back(action, first, second);
  rc::detail::TestParams params;
  params.maxSuccess = 1;
  const rc::detail::TestResult result =
      rc::detail::checkTestable([&] { run(steps); }, rc::detail::TestMetadata{}, params);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << text.str();
}

TEST(MachineModel, RandomCommandsAndRestartsAgreeWithAModelOfPlainVectors) {
  const bool is_long = std::getenv("BATON_LONG") != nullptr;
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = is_long ? 50'000 : 1'000;
  params.maxSize = 150;
  if (!is_long) params.seed = 1;
  const rc::detail::TestResult result = rc::detail::checkTestable(
      [] {
        const auto steps = *rc::gen::container<std::vector<Step>>(rc::gen::tuple(
            rc::gen::inRange<std::uint8_t>(0, 20), rc::gen::inRange<std::uint8_t>(0, 60),
            rc::gen::inRange<std::uint8_t>(0, 60)));
        run(steps);
      },
      rc::detail::TestMetadata{}, params);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << text.str();
}

}  // namespace
}  // namespace baton::machine_test
