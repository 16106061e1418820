#include "worker/runner/runner.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/assert.h"

namespace baton::worker {
namespace {

partition::Entry to_entry(coord::StoredEntry entry) {
  return {std::move(entry.key), std::move(entry.value), entry.revision};
}

partition::Reply failed(const Error& error) {
  return {.verdict = partition::Reply::Verdict::failed,
          .revision = 0,
          .entries = {},
          .error = to_string(error)};
}

partition::Reply to_reply(const Result<coord::CasOutcome>& outcome) {
  if (!outcome.has_value()) return failed(outcome.error());
  using Verdict = partition::Reply::Verdict;
  return {.verdict = outcome->done ? Verdict::done : Verdict::refused,
          .revision = outcome->revision,
          .entries = {},
          .error = {}};
}

partition::Reply to_reply(Result<std::vector<coord::StoredEntry>> entries) {
  if (!entries.has_value()) return failed(entries.error());
  partition::Reply reply{
      .verdict = partition::Reply::Verdict::done, .revision = 0, .entries = {}, .error = {}};
  for (coord::StoredEntry& entry : *entries) reply.entries.push_back(to_entry(std::move(entry)));
  return reply;
}

partition::WatchEvent::Kind to_kind(coord::WatchEvent::Kind kind) {
  using From = coord::WatchEvent::Kind;
  using To = partition::WatchEvent::Kind;
  switch (kind) {
    case From::put: return To::put;
    case From::removed: return To::removed;
    case From::snapshot_end: return To::snapshot_end;
    case From::session_lost: return To::session_lost;
    case From::broken: break;
  }
  return To::broken;
}

/// The minimum, however short the heartbeat: a machine that is busy for a moment is not an outage.
constexpr Duration kRequestTimeoutMin = std::chrono::milliseconds(100);

/// The runner that owns this thread.
thread_local const Runner* t_runner = nullptr;

template <class Callback, class Effect>
void tell(const Callback& callback, const Effect& effect) {
  if (callback) callback(effect);
}

}  // namespace

Instant boot_time() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return {(std::int64_t{time.tv_sec} * 1'000'000'000) + time.tv_nsec};
}

StoreThread::StoreThread() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

StoreThread::~StoreThread() {
  thread_.request_stop();
  wake_.notify_all();
}

void StoreThread::post(std::function<void()> task) {
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void StoreThread::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !tasks_.empty(); }) && !stop.stop_requested()) {
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

Runner::Runner(RunnerStore store, const partition::Settings& settings, RunnerEvents events)
    : store_(std::move(store.store)),
      remake_(std::move(store.remake)),
      lease_(settings.timing.lease),
      request_timeout_(std::max<Duration>(settings.timing.request_timeout(), kRequestTimeoutMin)),
      fenced_(settings.fenced),
      session_prefix_(partition::session_key(settings.group, settings.worker + ".")),
      events_(std::move(events)),
      machine_(settings),
      begun_(settings.partitions),
      epochs_(settings.partitions),
      thread_([this] { run(); }) {}

Runner::~Runner() {
  BATON_ASSERT(!is_own_thread());
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Runner::post(Event event) {
  {
    const std::scoped_lock lock(mutex_);
    inbox_.events.push_back(std::move(event));
  }
  wake_.notify_one();
}

void Runner::post(partition::WatchEvent seen) {
  {
    const std::scoped_lock lock(mutex_);
    inbox_.seen.push_back(std::move(seen));
  }
  wake_.notify_one();
}

Runner::Inbox Runner::wait_for_events(Instant until) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return !inbox_.events.empty() || !inbox_.seen.empty() || ending_; };
  // The condition's clock stands still while the machine sleeps, so the thread wakes at this
  // interval.
  constexpr Duration kLook = std::chrono::milliseconds(500);
  const Duration wait = std::min(until - boot_time(), kLook);
  if (wait > Duration::zero()) wake_.wait_for(lock, wait, ready);
  return std::exchange(inbox_, {});
}

void Runner::run() {
  t_runner = this;
  machine_.start(boot_time());
  while (true) {
    perform_effects();
    blind_.store(machine_.blind(), std::memory_order_relaxed);
    {
      const std::scoped_lock lock(mutex_);
      if (ending_ || end_.has_value()) return;
    }
    const Inbox inbox = wait_for_events(machine_.next_deadline());
    for (const Event& event : inbox.events) {
      event(machine_, boot_time());
      // Each event finds begun_ in the machine's state.
      perform_effects();
    }
    if (!inbox.seen.empty()) machine_.on_watch(inbox.seen, boot_time());
    const Instant now = boot_time();
    if (now >= machine_.next_deadline()) machine_.tick(now);
  }
}

void Runner::perform_effects() {
  for (const partition::Effect& effect : machine_.take_effects()) perform(effect);
}

void Runner::perform(const partition::Effect& effect) {
  std::visit([this](const auto& known) { on(known); }, effect);
}

void Runner::on(const partition::Request& request) {
  const bool renewal = request.key.starts_with(session_prefix_);
  (renewal ? renewals_ : others_).post([this, request] { execute(request); });
}

void Runner::execute(const partition::Request& request) {
  partition::Reply reply = ask_store(request);
  const bool failed_to_look = request.kind == partition::Request::Kind::list &&
                              reply.verdict == partition::Reply::Verdict::failed;
  post([id = request.id, reply = std::move(reply)](partition::Machine& machine, Instant now) {
    machine.on_reply(id, reply, now);
  });
  if (failed_to_look) remake_store();
}

partition::Reply Runner::ask_store(const partition::Request& request) {
  using Kind = partition::Request::Kind;
  switch (request.kind) {
    case Kind::get: {
      const auto entry = store_->get(request.key, request_timeout_);
      if (!entry.has_value()) return failed(entry.error());
      std::vector<coord::StoredEntry> entries;
      if (const auto& found = *entry; found.has_value()) entries.push_back(*found);
      return to_reply(std::move(entries));
    }
    case Kind::list: return to_reply(store_->list(request.key, request_timeout_));
    case Kind::cas:
      return to_reply(store_->cas(request.key, request.expected, request.value, std::nullopt,
                                  request_timeout_));
    case Kind::remove:
      return to_reply(store_->remove(request.key, request.expected, request_timeout_));
  }
  return {};
}

/// A store that has not answered for a whole lease may have lost the bucket: stores say so in
/// different ways, or not at all. Not earlier, because a worker that finds an empty bucket begins
/// anew.
void Runner::remake_store() {
  const Instant now = boot_time();
  if (!remake_ || now.ns < deadline_.load(std::memory_order_acquire) || now < remake_at_) return;
  remake_at_ = now + lease_;
  // If this fails, so will the next request, whose error is reported.
  [[maybe_unused]] const Status remade = remake_();
}

void Runner::on(const partition::OpenWatch& watch) {
  wanted_watch_ = watch.watch;
  others_.post([this, watch] {
    watch_.reset();
    if (wanted_watch_ != watch.watch) return;
    const auto tell_machine = [this, id = watch.watch](coord::WatchEvent event) {
      post(partition::WatchEvent{
          .watch = id, .kind = to_kind(event.kind), .entry = to_entry(std::move(event.entry))});
    };
    auto opened = store_->watch({.prefix = watch.prefix, .session = watch.session}, tell_machine,
                                request_timeout_);
    if (opened.has_value()) {
      watch_ = *std::move(opened);
      return;
    }
    tell_machine({.kind = coord::WatchEvent::Kind::broken,
                  .entry = {.key = {}, .value = to_string(opened.error()), .revision = 0}});
  });
}

void Runner::on(const partition::CloseWatch& watch) {
  std::uint64_t closed = watch.watch;
  if (!wanted_watch_.compare_exchange_strong(closed, 0)) return;
  others_.post([this] {
    if (wanted_watch_ == 0) watch_.reset();
  });
}

void Runner::on(const partition::Acquired& acquired) {
  BATON_ASSERT(acquired.partition < epochs_.size());
  begun_[acquired.partition] = acquired.epoch;
  epochs_[acquired.partition].store(acquired.epoch, std::memory_order_release);
  held_.fetch_add(1, std::memory_order_relaxed);
  tell(events_.acquired, acquired);
}

void Runner::on(const partition::Revoking& revoking) { tell(events_.revoking, revoking); }

void Runner::on(const partition::Lost& lost) {
  epochs_[lost.partition].store(0, std::memory_order_release);
  tell(events_.lost, lost);
}

void Runner::on(const partition::Renewed& renewed) {
  deadline_.store(renewed.deadline.ns, std::memory_order_release);
  tell(events_.renewed, renewed);
}

void Runner::on(const partition::Note& note) { tell(events_.note, note); }

void Runner::on(const partition::Finished& finished) {
  const std::scoped_lock lock(mutex_);
  end_ = finished.status;
  ended_.notify_all();
}

void Runner::stopped(std::uint32_t partition, std::uint64_t epoch) {
  if (partition >= epochs_.size() || epoch == 0) return;
  std::uint64_t ended = epoch;
  epochs_[partition].compare_exchange_strong(ended, 0, std::memory_order_acq_rel);
  post([this, partition, epoch](partition::Machine& machine, Instant now) {
    // Repeated, or late: others work under the newer epoch.
    if (begun_[partition] != epoch || !machine.stopped(partition, now)) return;
    held_.fetch_sub(1, std::memory_order_relaxed);
  });
}

void Runner::leave(bool for_good) {
  post([for_good](partition::Machine& machine, Instant now) { machine.leave(for_good, now); });
}

bool Runner::may_act(std::uint32_t partition, std::uint64_t epoch) const {
  if (partition >= epochs_.size() || epoch == 0) return false;
  if (epochs_[partition].load(std::memory_order_acquire) != epoch) return false;
  return fenced_ || boot_time().ns < deadline_.load(std::memory_order_acquire);
}

bool Runner::is_own_thread() const { return t_runner == this; }

std::optional<Status> Runner::wait_for(Duration time) {
  constexpr Duration kLong = std::chrono::hours(24 * 365);  // More would overflow in the library.
  std::unique_lock lock(mutex_);
  if (is_own_thread()) return end_;
  ended_.wait_for(lock, std::min(time, kLong), [this] { return end_.has_value(); });
  return end_;
}

}  // namespace baton::worker
