#include "worker/guardian/guarded_handlers.h"

#include <signal.h>

#include <algorithm>

namespace baton::worker {
namespace {

/// A signal takes a moment to arrive: it is sent this long before the deadline.
constexpr Duration kKillEarly = std::chrono::milliseconds(20);
constexpr int kKilledCode = 128 + SIGKILL;

Instant before(Instant at, Duration by) { return at + (-by); }

}  // namespace

void GuardedHandlers::on(const GuardCommand& command, Instant now) {
  std::visit([&](const auto& known) { apply(known, now); }, command);
}

void GuardedHandlers::apply(const NewDeadline& command, Instant now) {
  // A late message never shortens the time.
  deadline_ = std::max(deadline_, command.deadline);
  tick(now);
}

void GuardedHandlers::apply(const StartHandler& command, Instant now) {
  const HandlerTask& task = command.task;
  if (handlers_.contains(task.partition)) return;
  const Handler handler{.task = task};
  if (now >= std::min(notice_at(handler), kill_at(handler))) {  // The message was long on its way.
    actions_.emplace_back(GuardReport{HandlerEnded{task, kKilledCode, true}});
    return;
  }
  handlers_.emplace(task.partition, handler);
  actions_.emplace_back(Spawn{task});
}

void GuardedHandlers::apply(const StopHandler& command, Instant now) {
  const auto found = handlers_.find(command.partition);
  if (found == handlers_.end()) return;
  Handler& handler = found->second;
  tell_to_stop(handler);
  handler.stopping = true;
  handler.stop_by = std::min(handler.stop_by, command.kill_at);
  tick(now);
}

void GuardedHandlers::apply(const KillHandler& command, Instant /*now*/) {
  const auto found = handlers_.find(command.partition);
  if (found != handlers_.end()) kill(found->second);
}

void GuardedHandlers::apply(const SignalHandlers& command, Instant /*now*/) {
  for (const auto& [partition, handler] : handlers_) {
    if (!handler.killed) actions_.emplace_back(Signal{handler.pid, command.number});
  }
}

void GuardedHandlers::spawned(const HandlerTask& task, pid_t pid) {
  handlers_.at(task.partition).pid = pid;
  by_pid_.emplace(pid, task.partition);
  actions_.emplace_back(GuardReport{HandlerStarted{task, pid}});
}

void GuardedHandlers::not_spawned(const HandlerTask& task, int code) {
  handlers_.erase(task.partition);
  actions_.emplace_back(GuardReport{HandlerEnded{task, code}});
}

void GuardedHandlers::ended(pid_t pid, int code) {
  const auto found = by_pid_.find(pid);
  if (found == by_pid_.end()) return;
  const auto handler = handlers_.find(found->second);
  actions_.emplace_back(
      GuardReport{HandlerEnded{handler->second.task, code, handler->second.lease_over}});
  handlers_.erase(handler);
  by_pid_.erase(found);
}

void GuardedHandlers::tell_to_stop(Handler& handler) {
  if (std::exchange(handler.told, true) || handler.killed) return;
  actions_.emplace_back(Signal{handler.pid, SIGTERM});
}

void GuardedHandlers::kill(Handler& handler) {
  if (handler.killed) return;
  handler.killed = true;
  actions_.emplace_back(Signal{handler.pid, SIGKILL});
}

void GuardedHandlers::tick(Instant now) {
  for (auto& [partition, handler] : handlers_) {
    if (now >= notice_at(handler)) {
      tell_to_stop(handler);
      handler.lease_over = true;
      handler.stop_by = std::min(handler.stop_by, now + options_.drain);
    }
    if (handler.killed || now < kill_at(handler)) continue;
    handler.lease_over = !handler.stopping;
    kill(handler);
  }
}

void GuardedHandlers::kill_all() {
  for (auto& [partition, handler] : handlers_) kill(handler);
}

Instant GuardedHandlers::notice_at(const Handler& handler) const {
  const bool none = options_.fenced || options_.notice <= Duration::zero();
  if (none || handler.told || handler.killed) return Instant::never();
  return before(deadline_, kKillEarly + options_.notice);
}

Instant GuardedHandlers::kill_at(const Handler& handler) const {
  if (options_.fenced) return handler.stop_by;
  const Duration early = handler.stopping ? options_.stop_margin : kKillEarly;
  return std::min(handler.stop_by, before(deadline_, early));
}

Instant GuardedHandlers::next_deadline() const {
  Instant next = Instant::never();
  for (const auto& [partition, handler] : handlers_) {
    if (!handler.killed) next = std::min({next, notice_at(handler), kill_at(handler)});
  }
  return next;
}

}  // namespace baton::worker
