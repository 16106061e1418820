#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "core/workers/fake_kv.h"
#include "core/workers/machine.h"

namespace baton::partition {

/// Workers on one clock, over a store that answers at once, unless it is away.
class FakeGroup {
 public:
  struct Member {
    std::unique_ptr<Machine> machine;
    std::uint64_t watch = 0;
    bool running = true;   // False: it crashed, or stands still.
    bool obedient = true;  // Stops as soon as it is told to.
    std::set<std::uint32_t> at_work;
    std::vector<std::uint32_t> revoking;
    bool ended = false;
    Status end;  // Once it has.
    std::vector<std::string> notes;
  };

  explicit FakeGroup(std::uint32_t partitions)
      : partitions_(partitions),
        store_([this](const Entry& entry, bool removed) { changes_.push_back({entry, removed}); }) {
  }

  Settings settings(const std::string& worker) {
    Settings settings;
    settings.group = "g";
    settings.worker = worker;
    settings.partitions = partitions_;
    settings.timing = timing_of(Profile::standard, false);
    settings.incarnation = [this] { return std::to_string(++lives_); };
    return settings;
  }
  Member& join(const std::string& worker) { return join(settings(worker)); }
  Member& join(const Settings& settings) {
    Member& member = add(settings);
    settle();
    return member;
  }
  /// A worker that has started, and seen nothing yet.
  Member& add(const Settings& settings) {
    Member& member = members_[settings.worker + std::to_string(members_.size())];
    member.machine = std::make_unique<Machine>(settings);
    member.machine->start(now);
    return member;
  }

  /// Everything that can happen without the clock moving.
  void settle() {
    bool busy = true;
    for (int rounds = 0; busy; ++rounds) {
      BATON_ASSERT(rounds < 10'000);  // An endless loop otherwise.
      busy = false;
      for (auto& [name, member] : members_) busy |= drain(member);
      for (const auto& [entry, removed] : std::exchange(changes_, {})) {
        busy = true;
        show({.watch = 0,
              .kind = removed ? WatchEvent::Kind::removed : WatchEvent::Kind::put,
              .entry = entry});
      }
    }
  }
  void show(WatchEvent event) {
    for (auto& [name, member] : members_) {
      if (!member.running || member.watch == 0 || deaf_) continue;
      event.watch = member.watch;
      member.machine->on_watch(event, now);
    }
  }
  /// Lets time pass, stopping at every deadline.
  void pass(Duration time) {
    const Instant end = now + time;
    while (now < end) {
      Instant next = end;
      for (auto& [name, member] : members_) {
        if (member.running) next = std::min(next, member.machine->next_deadline());
      }
      now = std::max(now + Duration(1), next);
      for (auto& [name, member] : members_) {
        if (member.running) member.machine->tick(now);
      }
      settle();
    }
  }
  Reply store(const Request& request) { return store_.execute(request); }
  Entry stored(const std::string& key) {
    const auto found =
        store_.execute({.kind = Request::Kind::get, .key = key, .value = {}}).entries;
    return found.empty() ? Entry() : found.front();
  }
  void put(const std::string& key, const std::string& value) {
    store_.execute({.id = 0,
                    .kind = Request::Kind::cas,
                    .key = key,
                    .expected = stored(key).revision,
                    .value = value});
    settle();
  }
  void remove(const std::string& key) {
    store_.execute({.id = 0,
                    .kind = Request::Kind::remove,
                    .key = key,
                    .expected = stored(key).revision,
                    .value = {}});
    settle();
  }
  void wipe() { store_.forget_everything(); }
  /// The first chunk, as it stands in the store.
  Assignment assignment() {
    const std::vector<Entry> found = store_.list(assignment_key("g", 0));
    return found.empty() ? Assignment() : decode_assignment(found[0].value).value();
  }

  Instant now{std::chrono::seconds(1000).count() * 1'000'000'000};
  bool away = false;
  bool silent = false;  // No request is answered.
  bool writes_fail = false;
  bool lists_fail = false;
  std::string blank_reads;  // Reads do not find keys with this prefix; empty: no prefix.
  std::uint64_t requests = 0;

 private:
  bool drain(Member& member) {
    if (member.running && member.machine->next_deadline() <= now) member.machine->tick(now);
    const std::vector<Effect> effects = member.machine->take_effects();
    for (const Effect& effect : effects) {
      if (member.running) perform(member, effect);
    }
    return !effects.empty();
  }
  Reply answer(const Request& request) {
    using Kind = Request::Kind;
    if (away) return {.entries = {}, .error = "away"};
    if (writes_fail && request.kind == Kind::cas) return {.entries = {}, .error = "no room"};
    if (lists_fail && request.kind == Kind::list) return {.entries = {}, .error = "too slow"};
    Reply reply = store_.execute(request);
    if (blank_reads.empty()) return reply;
    std::erase_if(reply.entries,
                  [&](const Entry& entry) { return entry.key.starts_with(blank_reads); });
    return reply;
  }
  void perform(Member& member, const Effect& effect) {
    if (const auto* request = std::get_if<Request>(&effect)) {
      ++requests;
      if (silent) return;
      member.machine->on_reply(request->id, answer(*request), now);
    } else if (const auto* open = std::get_if<OpenWatch>(&effect)) {
      member.watch = open->watch;
      for (const Entry& entry : store_.list(open->prefix)) {
        if (!blank_reads.empty() && entry.key.starts_with(blank_reads)) continue;
        member.machine->on_watch(
            {.watch = open->watch, .kind = WatchEvent::Kind::put, .entry = entry}, now);
      }
      member.machine->on_watch(
          {.watch = open->watch, .kind = WatchEvent::Kind::snapshot_end, .entry = {}}, now);
    } else if (const auto* acquired = std::get_if<Acquired>(&effect)) {
      member.at_work.insert(acquired->partition);
    } else if (const auto* revoking = std::get_if<Revoking>(&effect)) {
      member.revoking.push_back(revoking->partition);
      if (member.obedient) stop(member, revoking->partition);
    } else if (const auto* lost = std::get_if<Lost>(&effect)) {
      stop(member, lost->partition);
    } else if (const auto* finished = std::get_if<Finished>(&effect)) {
      member.ended = true;
      member.end = finished->status;
      member.running = false;
    } else if (const auto* note = std::get_if<Note>(&effect)) {
      member.notes.push_back(note->text);
    }
  }
  void stop(Member& member, std::uint32_t partition) {
    member.at_work.erase(partition);
    member.machine->stopped(partition, now);
  }

  std::uint32_t partitions_;
  FakeKv store_;
  std::vector<std::pair<Entry, bool>> changes_;
  std::map<std::string, Member> members_;
  std::uint64_t lives_ = 0;
  bool deaf_ = false;
};

}  // namespace baton::partition
