#include "worker/guardian/handler_book.h"

#include <algorithm>

namespace baton::worker {

void HandlerBook::acquired(const HandlerTask& task, Instant now) {
  Handler& handler = handlers_[task.partition];
  handler = {.task = task, .since = now};
  start(handler, now);
}

void HandlerBook::start(Handler& handler, Instant now) {
  handler.state = Handler::State::running;
  handler.since = now;
  command(StartHandler{handler.task});
}

void HandlerBook::revoking(std::uint32_t partition, Instant kill_at) {
  const auto found = handlers_.find(partition);
  if (found == handlers_.end()) return;
  if (found->second.state == Handler::State::waiting) return forget(found);
  found->second.state = Handler::State::stopping;
  command(StopHandler{partition, kill_at});
}

void HandlerBook::lost(std::uint32_t partition) {
  const auto found = handlers_.find(partition);
  if (found == handlers_.end()) return;
  if (found->second.state == Handler::State::waiting) return forget(found);
  found->second.state = Handler::State::stopping;
  command(KillHandler{partition});
}

void HandlerBook::ended(const HandlerEnded& report, Instant now) {
  const auto found = handlers_.find(report.task.partition);
  if (found == handlers_.end() || found->second.task != report.task) return;
  Handler& handler = found->second;
  if (handler.state == Handler::State::stopping) return forget(found);
  if (handler.state != Handler::State::running) return;
  if (report.lease_over) {
    handler.state = Handler::State::waiting;
    handler.since = Instant::never();
    actions_.emplace_back(
        WillRestart{.task = handler.task, .code = report.code, .lease_over = true});
    return;
  }
  const Duration delay = handler.backoff.next(now - handler.since, report.code);
  handler.state = Handler::State::waiting;
  handler.since = now + delay;
  actions_.emplace_back(WillRestart{handler.task, report.code, delay});
}

void HandlerBook::renewed(Instant deadline) {
  command(NewDeadline{deadline});
  for (auto& [partition, handler] : handlers_) {
    const bool waits = handler.state == Handler::State::waiting;
    if (waits && handler.since == Instant::never()) handler.since = {};  // Due at once.
  }
}

void HandlerBook::signal(int number) { command(SignalHandlers{number}); }

void HandlerBook::hurry() {
  for (const auto& [partition, handler] : handlers_) {
    if (handler.state == Handler::State::stopping) command(KillHandler{partition});
  }
}

void HandlerBook::tick(Instant now) {
  for (auto& [partition, handler] : handlers_) {
    if (handler.state == Handler::State::waiting && now >= handler.since) start(handler, now);
  }
}

void HandlerBook::guardian_gone() {
  while (!handlers_.empty()) forget(handlers_.begin());
}

void HandlerBook::forget(std::map<std::uint32_t, Handler>::iterator handler) {
  actions_.emplace_back(Stopped{handler->second.task});
  handlers_.erase(handler);
}

Instant HandlerBook::next_deadline() const {
  Instant next = Instant::never();
  for (const auto& [partition, handler] : handlers_) {
    if (handler.state == Handler::State::waiting) next = std::min(next, handler.since);
  }
  return next;
}

}  // namespace baton::worker
