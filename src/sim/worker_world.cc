#include "sim/worker_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <utility>

namespace baton {

using partition::Assignment;
using partition::Entry;
using partition::Holding;
using partition::Machine;
using partition::Mutant;
using partition::SessionState;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr const char* kGroup = "orders";

}  // namespace

struct WorkerWorld::Process {
  std::string name;
  std::unique_ptr<Machine> machine;
  Instant born;
  double rate = 1;   // Of its clock.
  Duration skew{0};  // Of its wall clock.
  bool dead = false;
  bool paused = false;
  std::deque<std::function<void(Process&)>> waiting;  // While it is paused.
  std::uint64_t timer = 0;                            // Only the newest one counts.
  std::uint64_t watch = 0;                            // 0: none.
  bool deaf = false;                                  // The watch shows nothing any more.
  Instant watch_clear;                                // Events keep their order.
  std::vector<partition::WatchEvent> unseen;          // They have come, and it has not looked.
};

WorkerWorld::WorkerWorld(Options options)
    : options_(options),
      random_(options.seed),
      attention_(random_.fork("attention")),
      store_([this](const Entry& entry, bool removed) { on_change(entry, removed); }),
      timing_(partition::timing_of(partition::Profile::fast, false)) {
  partitions_ = static_cast<std::uint32_t>(1 + random_.below(16));
  timing_.drain = milliseconds(100 + random_.below(1500));
  slow_replies_ = attention_.chance(1, 3);
}

WorkerWorld::~WorkerWorld() = default;

// Processes.

WorkerWorld::Process& WorkerWorld::spawn(const std::string& name, bool static_id) {
  Process& process = *processes_.emplace_back(std::make_unique<Process>());
  process.name = name;
  process.born = timeline_.now();
  process.rate = 0.991 + (0.018 * static_cast<double>(random_.below(1000)) / 1000);
  process.skew = seconds(static_cast<std::int64_t>(random_.below(20)) - 10);
  partition::Settings settings;
  settings.group = kGroup;
  settings.worker = name;
  settings.partitions = partitions_;
  settings.static_id = static_id;
  settings.timing = timing_;
  settings.wall_offset = process.skew + std::chrono::hours(1);
  settings.incarnation = [this] { return fmt::format("i{:04}", ++incarnations_); };
  settings.mutant = options_.mutant;
  process.machine = std::make_unique<Machine>(settings);
  say(fmt::format("{} starts", name));
  deliver(process, [this](Process& self) { self.machine->start(clock_of(self)); });
  return process;
}

Instant WorkerWorld::clock_of(const Process& process) const {
  const auto elapsed = static_cast<double>((timeline_.now() - process.born).count());
  // A clock of its own that starts where the world's time is, and runs at its own rate.
  return process.born + Duration(static_cast<std::int64_t>(elapsed * process.rate));
}

void WorkerWorld::crash(Process& process) {
  say(fmt::format("{} crashes", process.name));
  process.dead = true;
  process.watch = 0;
}

void WorkerWorld::pause(Process& process, Duration time) {
  if (process.paused) return;
  say(fmt::format("{} stands still for {}", process.name, format_duration(time)));
  process.paused = true;
  timeline_.after(time, [this, &process] {
    process.paused = false;
    if (process.dead) return;
    say(fmt::format("{} goes on", process.name));
    check_acting();  // Before it has heard of anything.
    auto waiting = std::exchange(process.waiting, {});
    for (auto& event : waiting) deliver(process, std::move(event));
    deliver(process, [this](Process& self) { self.machine->tick(clock_of(self)); });
  });
}

void WorkerWorld::leave(Process& process, bool for_good) {
  say(fmt::format("{} leaves{}", process.name, for_good ? " for good" : ""));
  deliver(process,
          [this, for_good](Process& self) { self.machine->leave(for_good, clock_of(self)); });
}

void WorkerWorld::deliver(Process& process, std::function<void(Process&)> event) {
  if (process.dead) return;
  if (process.paused) {
    process.waiting.push_back(std::move(event));
    return;
  }
  event(process);
  handle_effects(process);
  check_acting();
}

void WorkerWorld::handle_effects(Process& process) {
  for (auto effects = process.machine->take_effects(); !effects.empty();
       effects = process.machine->take_effects()) {
    for (const partition::Effect& effect : effects) perform(process, effect);
  }
  arm_timer(process);
}

void WorkerWorld::perform(Process& process, const partition::Effect& effect) {
  const auto stop_after = [&](std::uint32_t partition, Duration time) {
    timeline_.after(time, [this, &process, partition] {
      deliver(process, [this, partition](Process& self) {
        self.machine->stopped(partition, clock_of(self));
      });
    });
  };
  if (const auto* request = std::get_if<partition::Request>(&effect)) {
    send(process, *request);
  } else if (const auto* watch = std::get_if<partition::OpenWatch>(&effect)) {
    open_watch(process, *watch);
  } else if (std::holds_alternative<partition::CloseWatch>(effect)) {
    process.watch = 0;
  } else if (const auto* acquired = std::get_if<partition::Acquired>(&effect)) {
    ++acquired_;
    say(fmt::format("{} acquires {} epoch {}", process.machine->session(), acquired->partition,
                    acquired->epoch));
  } else if (const auto* revoking = std::get_if<partition::Revoking>(&effect)) {
    // Some do not finish in time, and are told to stop at once.
    const auto most = static_cast<std::uint64_t>(timing_.drain.count()) * 6 / 5;
    stop_after(revoking->partition,
               faults_ ? Duration(random_.below(most)) : Duration(milliseconds(5)));
  } else if (const auto* lost = std::get_if<partition::Lost>(&effect)) {
    say(fmt::format("{} loses {}: {}", process.machine->session(), lost->partition, lost->why));
    stop_after(lost->partition, milliseconds(random_.below(20)));
  } else if (const auto* note = std::get_if<partition::Note>(&effect)) {
    say(fmt::format("{}: {}", process.machine->session(), note->text));
  } else if (const auto* end = std::get_if<partition::Finished>(&effect)) {
    say(fmt::format("{} ends: {}", process.machine->session(),
                    end->status.has_value() ? "clean" : to_string(end->status.error())));
    process.dead = true;
  }
}

void WorkerWorld::arm_timer(Process& process) {
  const Instant next = process.machine->next_deadline();
  if (next == Instant::never() || process.dead) return;
  const auto left = static_cast<double>((next - clock_of(process)).count());
  const Duration wait =
      std::max(Duration(static_cast<std::int64_t>(left / process.rate) + 1000), Duration(1000));
  timeline_.after(wait, [this, &process, timer = ++process.timer] {
    if (timer != process.timer) return;
    deliver(process, [this](Process& self) { self.machine->tick(clock_of(self)); });
  });
}

// The network.

Duration WorkerWorld::delay() {
  if (faults_ && random_.chance(1, 50)) return milliseconds(random_.below(3000));
  return microseconds(50 + random_.below(2000));
}

void WorkerWorld::send(Process& process, const partition::Request& request) {
  const bool lost = faults_ && random_.chance(1, 60);
  const bool reply_lost = faults_ && random_.chance(1, 60);
  const bool may_be_slow =
      request.kind == partition::Request::Kind::list || (faults_ && slow_replies_);
  const bool slow = may_be_slow && random_.chance(1, 2);
  const Duration there = delay();
  const Duration back = delay() * (slow ? 50 : 1);
  const auto answered = std::make_shared<bool>(false);
  const auto answer = [this, &process, id = request.id, answered](const partition::Reply& reply) {
    if (std::exchange(*answered, true)) return;
    deliver(process, [this, id, reply](Process& self) {
      self.machine->on_reply(id, reply, clock_of(self));
    });
  };
  // One that its sender gave up may still arrive.
  timeline_.after(timing_.request_timeout(),
                  [answer] { answer({.entries = {}, .error = "timeout"}); });
  if (lost) return;
  timeline_.after(there, [this, request, answer, reply_lost, back, writer = process.name] {
    if (outage_) return;
    writer_ = writer;
    const partition::Reply reply = store_.execute(request);
    if (!reply_lost) timeline_.after(back, [answer, reply] { answer(reply); });
  });
}

void WorkerWorld::open_watch(Process& process, const partition::OpenWatch& watch) {
  process.watch = watch.watch;
  process.deaf = faults_ && random_.chance(1, 10);
  timeline_.after(delay(), [this, &process, watch] {
    if (process.watch != watch.watch || process.dead) return;
    if (outage_) {
      watch_event(process, {.watch = watch.watch,
                            .kind = partition::WatchEvent::Kind::broken,
                            .entry = {"", "no connection", 0}});
      return;
    }
    // One by one and at times slowly: a worker that looks at half of them sees half of them.
    const bool slow = random_.chance(1, 2);
    for (const Entry& entry : store_.list(watch.prefix)) {
      if (slow)
        process.watch_clear =
            std::max(process.watch_clear, timeline_.now()) + milliseconds(random_.below(30));
      watch_event(process,
                  {.watch = watch.watch, .kind = partition::WatchEvent::Kind::put, .entry = entry});
    }
    watch_event(
        process,
        {.watch = watch.watch, .kind = partition::WatchEvent::Kind::snapshot_end, .entry = {}});
  });
}

void WorkerWorld::watch_event(Process& process, partition::WatchEvent event) {
  if (process.deaf) return;
  process.watch_clear = std::max(process.watch_clear, timeline_.now() + delay());
  timeline_.after(process.watch_clear - timeline_.now(),
                  [this, &process, event = std::move(event)] {
                    if (process.watch != event.watch) return;
                    process.unseen.push_back(event);
                    // At times it is busy, and sees more than one thing at once.
                    if (!attention_.chance(1, 8)) return show_unseen(process);
                    timeline_.after(microseconds(attention_.below(5000)),
                                    [this, &process] { show_unseen(process); });
                  });
}

void WorkerWorld::show_unseen(Process& process) {
  deliver(process, [this](Process& self) {
    const auto events = std::exchange(self.unseen, {});
    if (!events.empty()) self.machine->on_watch(events, clock_of(self));
  });
}

void WorkerWorld::on_change(const Entry& entry, bool removed) {
  if (!removed && partition::chunk_of_key(kGroup, entry.key).has_value()) check_assignment(entry);
  for (const auto& process : processes_) {
    if (process->watch == 0 || process->dead) continue;
    using Kind = partition::WatchEvent::Kind;
    watch_event(
        *process,
        {.watch = process->watch, .kind = removed ? Kind::removed : Kind::put, .entry = entry});
  }
}

// What must hold.

void WorkerWorld::violate(std::string text) {
  if (!violation_.empty()) return;
  violation_ = fmt::format("seed {} at {}: {}", options_.seed,
                           format_duration(Duration(timeline_.now().ns)), text);
  say(violation_);
}

void WorkerWorld::say(std::string text) {
  if (!options_.trace) return;
  trace_.push_back(fmt::format("{:>9.3f} {}", static_cast<double>(timeline_.now().ns) / 1e9, text));
}

/// Never two that may act on one partition.
void WorkerWorld::check_acting() {
  for (std::uint32_t partition = 0; partition < partitions_; ++partition) {
    const Process* holder = nullptr;
    for (const auto& process : processes_) {
      if (process->dead || process->paused ||
          !process->machine->may_act(partition, clock_of(*process))) {
        continue;
      }
      if (holder != nullptr) {
        violate(fmt::format("{} and {} both act on partition {}", holder->machine->session(),
                            process->machine->session(), partition));
      }
      holder = process.get();
    }
  }
}

void WorkerWorld::check_assignment(const Entry& entry) {
  const Result<Assignment> assignment = partition::decode_assignment(entry.value);
  if (!assignment.has_value()) return violate(to_string(assignment.error()));
  Assignment& last = assignments_[assignment->first];
  last.holdings.resize(assignment->holdings.size());
  for (std::size_t i = 0; i < last.holdings.size(); ++i) {
    check_change(assignment->first + static_cast<std::uint32_t>(i), last.holdings[i],
                 assignment->holdings[i]);
  }
  last = *assignment;
}

/// Epochs grow with each change of the owner, and only then; and nobody but the owner takes a
/// partition from a session that lives.
void WorkerWorld::check_change(std::uint32_t partition, const Holding& before,
                               const Holding& after) {
  if (before.owner == after.owner) {
    if (before.epoch != after.epoch) violate("an epoch changed without its owner");
    return;
  }
  if (after.epoch <= before.epoch) violate("an owner changed without a new epoch");
  const std::string_view worker = partition::worker_of(before.owner);
  if (worker != partition::worker_of(after.owner)) ++owner_changes_;
  if (before.owner.empty() || worker == writer_) return;
  for (const Entry& other : store_.list(partition::session_key(kGroup, before.owner))) {
    const auto session = partition::decode_session(other.value);
    if (!session.has_value() || session->dead()) continue;
    violate(
        fmt::format("{} took partition {} from {}, which lives", writer_, partition, before.owner));
  }
}

std::vector<WorkerWorld::Process*> WorkerWorld::alive() const {
  std::vector<Process*> result;
  for (const auto& process : processes_) {
    if (!process->dead) result.push_back(process.get());
  }
  return result;
}

/// Complete, balanced, and every worker at work on what the assignment gives it.
void WorkerWorld::check_settled() {
  std::map<std::string, std::size_t> counts;
  for (const Process* process : alive()) counts[process->machine->session()] = 0;
  if (counts.empty()) return;
  for (const auto& [first, assignment] : assignments_) {
    for (std::uint32_t i = 0; i < assignment.holdings.size(); ++i) {
      check_held(first + i, assignment.holdings[i]);
      ++counts[assignment.holdings[i].owner];
    }
  }
  const auto [least, most] =
      std::ranges::minmax_element(counts, {}, [](const auto& count) { return count.second; });
  if (most->second > least->second + 1) {
    violate(fmt::format("{} has {} partitions, and {} has {}", most->first, most->second,
                        least->first, least->second));
  }
}

void WorkerWorld::check_held(std::uint32_t partition, const Holding& holding) {
  if (!holding.next.empty())
    return violate(fmt::format("partition {} is still to move", partition));
  for (const Process* process : alive()) {
    if (process->machine->session() != holding.owner) continue;
    if (process->machine->may_act(partition, clock_of(*process))) return;
    return violate(fmt::format("{} does not work on its partition {}", holding.owner, partition));
  }
  violate(
      fmt::format("partition {} belongs to \"{}\", who is not alive", partition, holding.owner));
}

void WorkerWorld::run_for(Duration time) {
  bool over = false;
  timeline_.after(time, [&over] { over = true; });
  while (!over && violation_.empty() && timeline_.step()) {
  }
}

// What happens.

WorkerWorld::Process* WorkerWorld::pick_alive() {
  const std::vector<Process*> living = alive();
  return living.empty() ? nullptr : living[random_.below(living.size())];
}

void WorkerWorld::chaos_step() {
  const std::size_t living = alive().size();
  const std::uint64_t what = random_.below(12);
  if (living < 2 || (what < 2 && living < 6)) {
    const bool static_id = random_.chance(1, 3);
    const std::string name =
        static_id ? fmt::format("s{}", random_.below(3)) : fmt::format("w{}", ++names_);
    spawn(name, static_id);
  } else if (what < 5) {
    pause(*pick_alive(), milliseconds(100 + random_.below(4000)));
  } else if (what < 6) {
    crash(*pick_alive());
  } else if (what < 8) {
    leave(*pick_alive(), random_.chance(1, 2));
  } else if (what < 9 && !outage_) {
    say("the store goes away");
    outage_ = true;
    timeline_.after(milliseconds(200 + random_.below(4000)), [this] {
      say("the store is back");
      outage_ = false;
    });
  } else {
    Process& process = *pick_alive();
    say(fmt::format("{} goes deaf", process.name));
    process.deaf = true;
  }
}

void WorkerWorld::run() { options_.seed % 2 == 0 ? run_quiet() : run_chaos(); }

void WorkerWorld::run_chaos() {
  faults_ = true;
  for (std::uint64_t i = 1 + random_.below(4); i > 0; --i)
    spawn(fmt::format("w{}", ++names_), false);
  const std::uint64_t steps = 10 + random_.below(15);
  for (std::uint64_t i = 0; i < steps && violation_.empty(); ++i) {
    run_for(milliseconds(random_.below(2500)));
    chaos_step();
  }
  say("faults end");
  faults_ = false;
  outage_ = false;
  for (const auto& process : processes_) process->deaf = false;
  run_for(seconds(20));
  if (violation_.empty()) check_settled();
}

/// Runs until it must have settled: then so many partitions have another worker, and work was begun
/// on so many. Work that stops and begins again for nothing is a bug as well.
void WorkerWorld::expect_moves(std::string_view what, std::size_t moves, std::size_t begun) {
  owner_changes_ = 0;
  const std::uint64_t acquired = acquired_;
  run_for(seconds(8));
  if (violation_.empty()) check_settled();
  if (!violation_.empty()) return;
  if (owner_changes_ != moves) {
    violate(fmt::format("{} moved {} partitions; the minimum is {}", what, owner_changes_, moves));
  } else if (acquired_ - acquired != begun) {
    violate(fmt::format("{} began work {} times; {} would do", what, acquired_ - acquired, begun));
  }
}

void WorkerWorld::run_quiet() {
  const std::size_t workers = 1 + random_.below(5);
  for (std::size_t i = 0; i < workers; ++i) {
    spawn(fmt::format("s{}", i), true);
    run_for(milliseconds(random_.below(300)));
  }
  run_for(seconds(8));
  const auto held_by = [this](const Process& process) {
    std::size_t count = 0;
    for (const auto& [first, assignment] : assignments_) {
      count += static_cast<std::size_t>(
          std::ranges::count(assignment.holdings, process.machine->session(), &Holding::owner));
    }
    return count;
  };
  spawn(random_.chance(1, 2) ? "a" : "z", true);  // The lowest rank, or the highest.
  const std::size_t share = partitions_ / (workers + 1);
  expect_moves("a join", share, share);

  Process& restarted = *pick_alive();
  const std::string name = restarted.name;
  const std::size_t kept = held_by(restarted);
  leave(restarted, false);
  run_for(milliseconds(100 + random_.below(1000)));
  spawn(name, true);
  expect_moves("a restart", 0, kept);

  if (!violation_.empty()) return;
  Process& leaver = *pick_alive();
  const std::size_t had = held_by(leaver);
  leave(leaver, true);
  expect_moves("a leave", had, alive().size() > 1 ? had : 0);

  if (!violation_.empty()) return;
  Process& victim = *pick_alive();
  const std::size_t lost = held_by(victim);
  crash(victim);
  if (!alive().empty()) expect_moves("a kill", lost, lost);
}

}  // namespace baton
