#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "core/workers/fake_kv.h"
#include "core/workers/machine.h"
#include "sim/timeline.h"

namespace baton {

/// Workers that divide partitions over a store that is slow, loses requests and replies, goes away,
/// answers reads with what was true a while ago, and whose watches go blind; processes that stop
/// for longer than their lease, crash, leave, come back, are started twice or with other settings;
/// documents that are overwritten or removed; clocks that run at different rates and tell different
/// times. Everything follows from the seed.
class WorkerWorld {
 public:
  struct Options {
    std::uint64_t seed = 0;
    partition::Mutant mutant = partition::Mutant::none;
    bool trace = false;
  };

  explicit WorkerWorld(Options options);
  ~WorkerWorld();

  /// Half of the seeds are full of faults, half of them quiet.
  void run();

  /// Empty if every promise was kept.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  [[nodiscard]] const std::vector<std::string>& trace() const { return trace_; }
  [[nodiscard]] std::uint64_t acquired() const { return acquired_; }

 private:
  static constexpr const char* kGroup = "orders";
  static constexpr std::uint32_t kPartitionsMax = 16;

  struct Process {
    std::string name;
    bool fenced = false;
    std::uint32_t partitions = 0;  // The number in its settings.
    std::unique_ptr<partition::Machine> machine;
    std::map<std::uint32_t, std::uint64_t> epochs;  // Epochs of what it acquired.
    Instant born;
    double rate = 1;   // Of its clock.
    Duration skew{0};  // Of its wall clock.
    bool dead = false;
    bool paused = false;
    std::deque<std::function<void(Process&)>> waiting;  // While it is paused.
    std::uint64_t timer = 0;                            // Only the newest timer counts.
    std::uint64_t watch = 0;                            // 0: no watch.
    bool deaf = false;                                  // The watch shows nothing any more.
    Instant watch_clear;                                // Events keep their order.
    std::vector<partition::WatchEvent> unseen;          // Arrived, and not handled yet.
  };
  struct Birth {
    std::string name;
    bool static_id = false;
    bool fenced = false;           // Its sink checks epochs.
    std::uint32_t partitions = 0;  // The number in its settings; 0: the group's.
  };

  // Processes.
  Process& spawn(const Birth& birth);
  void crash(Process& process);
  void pause(Process& process, Duration time);
  void leave(Process& process, bool for_good);
  void deliver(Process& process, std::function<void(Process&)> event);
  void handle_effects(Process& process);
  void perform(Process& process, const partition::Effect& effect);
  void arm_timer(Process& process);
  [[nodiscard]] Instant clock_of(const Process& process) const;

  // The network.
  void send(Process& process, const partition::Request& request);
  partition::Reply execute(const partition::Request& request);
  void open_watch(Process& process, const partition::OpenWatch& watch);
  void on_change(const partition::Entry& entry, bool removed);
  void watch_event(Process& process, partition::WatchEvent event);
  void show_unseen(Process& process);
  void lose_connection(Process& process);
  Duration delay();

  // What happens, and what must hold.
  /// Faults, and at the end a quiet time in which everything must settle.
  void run_chaos();
  /// No faults: joins, leaves and restarts that must move no more partitions than they have to.
  void run_quiet();
  void chaos_step();
  void spawn_any();
  void spoil_session(const Process& process);
  void remove_session(const Process& process);
  void remove_assignment();
  void lose_store();
  void check_acting();
  void check_acting(std::uint32_t partition);
  void check_settled();
  void check_held(std::uint32_t partition, const partition::Holding& holding);
  void check_assignment(const partition::Entry& entry);
  void check_change(std::uint32_t partition, const partition::Holding& before,
                    const partition::Holding& after);
  void expect_moves(std::string_view what, std::size_t moves, std::size_t begun);
  void run_for(Duration time);
  void violate(std::string text);
  void say(std::string text);
  Process* pick_alive();
  [[nodiscard]] std::vector<Process*> alive() const;

  Options options_;
  Random random_;
  Random attention_;  // For what the workers see, and when.
  Timeline timeline_;
  partition::FakeKv store_;
  partition::Timing timing_;
  std::uint32_t partitions_ = 0;  // Of the group: what its first document says.
  bool faults_ = false;
  bool outage_ = false;
  bool slow_replies_ = false;                  // In this run, while there are faults.
  bool hints_ = false;                         // The store sees connections break.
  std::vector<partition::Entry> left_behind_;  // Old answers of a server that was cut off.
  std::uint64_t names_ = 0;
  std::uint64_t incarnations_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<std::uint32_t, partition::Assignment> assignments_;  // As stored.
  std::string writer_;                                          // Whose request is being executed.
  std::size_t owner_changes_ = 0;
  std::string violation_;
  std::vector<std::string> trace_;
  std::uint64_t acquired_ = 0;
};

}  // namespace baton
