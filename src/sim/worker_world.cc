#include "sim/worker_world.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace baton {

using partition::Assignment;
using partition::Entry;
using partition::Holding;
using partition::Machine;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

WorkerWorld::WorkerWorld(Options options)
    : options_(options),
      random_(options.seed),
      attention_(random_.fork("attention")),
      store_([this](const Entry& entry, bool removed) { on_change(entry, removed); }),
      timing_(partition::timing_of(partition::Profile::fast, false)) {
  partitions_ = static_cast<std::uint32_t>(1 + random_.below(kPartitionsMax));
  timing_.drain = milliseconds(100 + random_.below(1500));
  slow_replies_ = attention_.chance(1, 3);
}

WorkerWorld::~WorkerWorld() = default;

// Processes.

WorkerWorld::Process& WorkerWorld::spawn(const Birth& birth) {
  Process& process = *processes_.emplace_back(std::make_unique<Process>());
  process.name = birth.name;
  process.fenced = birth.fenced;
  process.partitions = birth.partitions == 0 ? partitions_ : birth.partitions;
  process.born = timeline_.now();
  process.rate = 0.991 + (0.018 * static_cast<double>(random_.below(1000)) / 1000);
  process.skew = seconds(static_cast<std::int64_t>(random_.below(20)) - 10);
  partition::Settings settings;
  settings.group = kGroup;
  settings.worker = birth.name;
  settings.partitions = process.partitions;
  settings.static_id = birth.static_id;
  settings.fenced = birth.fenced;
  settings.timing = timing_;
  settings.wall_offset = process.skew + std::chrono::hours(1);
  settings.incarnation = [this] { return fmt::format("i{:04}", ++incarnations_); };
  settings.mutant = options_.mutant;
  process.machine = std::make_unique<Machine>(settings);
  say(fmt::format("{} starts with {} partitions{}", birth.name, process.partitions,
                  birth.fenced ? ", fenced" : ""));
  deliver(process, [this](Process& self) { self.machine->start(clock_of(self)); });
  return process;
}

Instant WorkerWorld::clock_of(const Process& process) const {
  const auto elapsed = static_cast<double>((timeline_.now() - process.born).count());
  // Its own clock, which starts at the world's time and runs at its own rate.
  return process.born + Duration(static_cast<std::int64_t>(elapsed * process.rate));
}

void WorkerWorld::crash(Process& process) {
  say(fmt::format("{} crashes", process.name));
  process.dead = true;
  lose_connection(process);
}

void WorkerWorld::pause(Process& process, Duration time) {
  if (process.paused) return;
  say(fmt::format("{} stands still for {}", process.name, format_duration(time)));
  process.paused = true;
  timeline_.after(time, [this, &process] {
    process.paused = false;
    if (process.dead) return;
    say(fmt::format("{} goes on", process.name));
    check_acting();  // Before it has received anything.
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
    process.epochs[acquired->partition] = acquired->epoch;
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
  // A request that its sender gave up may still arrive.
  timeline_.after(timing_.request_timeout(),
                  [answer] { answer({.entries = {}, .error = "timeout"}); });
  if (lost) return;
  timeline_.after(there, [this, request, answer, reply_lost, back, writer = process.name] {
    if (outage_) return;
    writer_ = writer;
    const partition::Reply reply = execute(request);
    if (!reply_lost) timeline_.after(back, [answer, reply] { answer(reply); });
  });
}

partition::Reply WorkerWorld::execute(const partition::Request& request) {
  using Kind = partition::Request::Kind;
  const bool reads = request.kind == Kind::get || request.kind == Kind::list;
  if (!reads || !faults_ || left_behind_.empty() || !random_.chance(1, 20)) {
    return store_.execute(request);
  }
  partition::Reply reply{
      .verdict = partition::Reply::Verdict::done, .revision = 0, .entries = {}, .error = {}};
  for (const Entry& entry : left_behind_) {
    const bool asked =
        request.kind == Kind::get ? entry.key == request.key : entry.key.starts_with(request.key);
    if (asked) reply.entries.push_back(entry);
  }
  return reply;
}

/// The store notices it, if it can: the others get a hint, and the process a broken watch, if it
/// lives.
void WorkerWorld::lose_connection(Process& process) {
  using Kind = partition::WatchEvent::Kind;
  const std::uint64_t lost = std::exchange(process.watch, 0);
  if (lost == 0) return;
  const Entry session{partition::session_key(kGroup, process.machine->session()), "", 0};
  for (const auto& other : processes_) {
    if (!hints_ || other->watch == 0 || other->dead) continue;
    watch_event(*other, {.watch = other->watch, .kind = Kind::session_lost, .entry = session});
  }
  const partition::WatchEvent broken{
      .watch = lost, .kind = Kind::broken, .entry = {"", "it broke", 0}};
  deliver(process,
          [this, broken](Process& self) { self.machine->on_watch(broken, clock_of(self)); });
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
    // One by one and sometimes slowly: a worker that acts on half of them has seen only half.
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
                    // Sometimes it is busy, and then sees several events at once.
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

void WorkerWorld::spawn_any() {
  Birth birth;
  birth.static_id = random_.chance(1, 3);
  birth.name =
      birth.static_id ? fmt::format("s{}", random_.below(3)) : fmt::format("w{}", ++names_);
  birth.fenced = random_.chance(1, 4);
  if (random_.chance(1, 8)) {
    birth.partitions = static_cast<std::uint32_t>(1 + random_.below(kPartitionsMax));
  }
  spawn(birth);
  if (birth.static_id && random_.chance(1, 3)) spawn(birth);  // By mistake.
}

/// A document is overwritten by mistake.
void WorkerWorld::spoil_session(const Process& process) {
  const std::string key = partition::session_key(kGroup, process.machine->session());
  const std::vector<Entry> found = store_.list(key);
  if (found.empty()) return;
  say(fmt::format("{} is overwritten", key));
  store_.execute({.id = 0,
                  .kind = partition::Request::Kind::cas,
                  .key = key,
                  .expected = found.front().revision,
                  .value = "garbage"});
}

/// An operator removes the session, believing that it is dead.
void WorkerWorld::remove_session(const Process& process) {
  const std::string key = partition::session_key(kGroup, process.machine->session());
  const std::vector<Entry> found = store_.list(key);
  if (found.empty()) return;
  say(fmt::format("{} is removed", key));
  writer_ = "an operator";
  store_.execute({.id = 0,
                  .kind = partition::Request::Kind::remove,
                  .key = key,
                  .expected = found.front().revision,
                  .value = {}});
}

void WorkerWorld::chaos_step() {
  const std::size_t living = alive().size();
  const std::uint64_t what = random_.below(17);
  if (living < 2 || (what < 2 && living < 6)) {
    spawn_any();
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
  } else if (what < 10) {
    spoil_session(*pick_alive());
  } else if (what < 11) {
    say("a server is left behind");
    left_behind_ = store_.list("");
  } else if (what < 12) {
    Process& process = *pick_alive();
    say(fmt::format("{} loses its connection", process.name));
    lose_connection(process);
  } else if (what < 14) {
    Process& process = *pick_alive();
    if (random_.chance(1, 2)) pause(process, milliseconds(100 + random_.below(4000)));
    remove_session(process);
  } else {
    Process& process = *pick_alive();
    say(fmt::format("{} goes deaf", process.name));
    process.deaf = true;
  }
}

void WorkerWorld::run() { options_.seed % 2 == 0 ? run_quiet() : run_chaos(); }

void WorkerWorld::run_chaos() {
  faults_ = true;
  hints_ = random_.chance(1, 2);
  for (std::uint64_t i = 1 + random_.below(4); i > 0; --i) spawn_any();
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

/// Runs until it must have settled: then exactly this many partitions have moved, and this many
/// were started. Work that stops and starts again without need is a bug as well.
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

/// An operator's mistake: running workers know the former assignment.
void WorkerWorld::remove_assignment() {
  say("the assignment is removed");
  writer_ = "an operator";
  for (const Entry& entry : store_.list(partition::assignment_key(kGroup, 0))) {
    store_.execute({.id = 0,
                    .kind = partition::Request::Kind::remove,
                    .key = entry.key,
                    .expected = entry.revision,
                    .value = {}});
  }
  owner_changes_ = 0;
  run_for(seconds(8));
  if (violation_.empty()) check_settled();
  if (violation_.empty() && owner_changes_ != 0) violate("a removed assignment moved partitions");
}

/// The store's server returns without its disk, when no worker is at work any more: otherwise a
/// worker that starts then, and sees nobody, would take what others work on.
void WorkerWorld::lose_store() {
  say("the store goes away");
  outage_ = true;
  run_for(timing_.lease * 2);
  say("the store has lost everything");
  outage_ = false;
  store_.forget_everything();
  expect_moves("a store that lost everything", 0, partitions_);
}

void WorkerWorld::run_quiet() {
  const std::size_t workers = 1 + random_.below(5);
  for (std::size_t i = 0; i < workers; ++i) {
    spawn({.name = fmt::format("s{}", i), .static_id = true});
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
  spawn({.name = random_.chance(1, 2) ? "a" : "z",
         .static_id = true});  // The lowest rank, or the highest.
  const std::size_t share = partitions_ / (workers + 1);
  expect_moves("a join", share, share);
  if (violation_.empty()) remove_assignment();
  if (violation_.empty()) lose_store();

  Process& restarted = *pick_alive();
  const std::string name = restarted.name;
  const std::size_t kept = held_by(restarted);
  leave(restarted, false);
  run_for(milliseconds(100 + random_.below(1000)));
  spawn({.name = name, .static_id = true});
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
