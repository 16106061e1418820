#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "core/group/machine.h"
#include "core/lease/session_lease.h"
#include "sim/timeline.h"

namespace baton {

/// Mistakes that the simulation must find.
enum class SeatBug : std::uint8_t {
  none,
  client_counts_from_the_answer,  // Not from when the heartbeat was sent.
  client_looks_at_no_clock,       // Only its timer ends its lease, late in a stopped process.
  broker_is_impatient,            // It gives the seat away after 3 s of silence.
  break_hands_over_at_once,       // After a visible break in a strict group.
  restart_forgets_leases,         // The broker activates at once after a restart.
  clocks_far_apart,               // Rates that differ by more than the lease rule covers.
};

/// Consumers of one single-active group, each a process with a clock of its own rate, and a broker
/// that is the shipped coordinator with the shipped leases: links that fall silent in one direction
/// or both and deliver everything later, links that break visibly, processes that are stopped and
/// woken, and a broker that is stopped, or killed and started again. The consumer that has the seat
/// writes its epoch into a file. Everything follows from the seed.
///
/// Promise: no epoch in the file is followed by a lower one; and when the faults are over, some
/// consumer writes.
class SeatWorld {
 public:
  struct Options {
    std::uint64_t seed = 0;
    SeatBug bug = SeatBug::none;
  };

  explicit SeatWorld(Options options);

  void run();

  /// Empty if the promises were kept.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  [[nodiscard]] std::uint64_t handovers() const { return handovers_; }
  [[nodiscard]] std::uint64_t writes() const { return writes_; }

 private:
  struct Heartbeat {
    std::uint64_t number = 0;
  };
  struct Acknowledged {
    std::uint64_t number = 0;
    Instant broker_time;
  };
  struct Active {
    Generation epoch;
  };
  struct StepDown {  // The broker's word, and the client's answer to it.
    Generation generation;
  };
  struct Ended {};  // FIN or RST.
  using Word = std::variant<Heartbeat, Acknowledged, Active, StepDown, Ended>;
  /// One direction of a connection: in order, late, and silent while it is cut.
  struct Way {
    std::deque<Word> words;
    bool cut = false;
    bool moving = false;
  };
  struct Process {
    double rate = 1;
    bool stopped = false;
  };
  struct Client {
    Process process;
    std::uint64_t call = 0;  // 0: no call.
    SessionHold hold;
    std::optional<Generation> seat;
    Instant answer_until{};  // For a planted bug.
  };
  struct Call {
    std::size_t client = 0;
    Way up;
    Way down;
    bool open_at_broker = false;
    bool registered = false;
    SessionGrant grant;
  };

  [[nodiscard]] Instant clock(const Process& process) const;
  [[nodiscard]] Duration between(std::int64_t least_ms, std::int64_t most_ms);
  [[nodiscard]] bool chance(double probability);
  [[nodiscard]] bool has_bug(SeatBug bug) const { return options_.bug == bug; }

  // Links.
  void say(std::uint64_t call, bool up, Word word);
  void move(std::uint64_t call, bool up);
  void deliver(std::uint64_t call, bool up, const Word& word);
  void break_visibly(std::uint64_t call);

  // Clients.
  void connect(std::size_t index);
  void hear(std::size_t index, const Word& word);
  void hear_answer(std::size_t index, const Acknowledged& answer);
  void beat(std::size_t index, std::uint64_t call);
  void work(std::size_t index);
  [[nodiscard]] bool may_work(const Client& client) const;
  void give_up(std::size_t index);

  // The broker.
  void take(std::uint64_t call, const Word& word);
  void take_heartbeat(std::uint64_t call, std::uint64_t number);
  void admit(std::uint64_t call);
  void end_call(std::uint64_t call);
  void look_at_lease(std::uint64_t call);
  void watch_lease(std::uint64_t call);
  void run_effects();
  void look_at_deadline();
  void restart_broker();
  void boot();

  void trouble();
  void heal();

  static constexpr std::size_t kClients = 3;

  Options options_;
  Random random_;
  Timeline timeline_;
  bool strict_ = false;
  bool quiet_ = false;  // No more faults.
  Process broker_;
  std::uint64_t boots_ = 0;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<CoordinatorFact> facts_;  // All recorded facts.
  std::vector<Client> clients_{kClients};
  std::map<std::uint64_t, Call> calls_;
  std::uint64_t next_call_ = 0;
  Generation newest_{};
  std::uint64_t handovers_ = 0;
  std::uint64_t writes_ = 0;
  Instant last_write_{};
  std::string violation_;
};

}  // namespace baton
