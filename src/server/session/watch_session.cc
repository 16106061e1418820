#include "server/session/watch_session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "server/session/calls.h"
#include "server/session/limits.h"

namespace baton {
namespace {

using Piece = WatchSession::Piece;

std::size_t bytes_of(const KvEntryRef& entry) { return entry->key.size() + entry->value.size(); }

/// The approximate bytes that a piece adds to an output.
std::size_t bytes_of(const Piece& piece) {
  constexpr std::size_t kSmall = 32;
  if (const auto* entry = std::get_if<KvEntryRef>(&piece)) return kSmall + bytes_of(*entry);
  if (const auto* change = std::get_if<KvChange>(&piece)) return kSmall + bytes_of(change->entry);
  if (const auto* lost = std::get_if<KvSessionLost>(&piece)) return kSmall + lost->key.size();
  return kSmall;
}

}  // namespace

void SnapshotPages::add(std::string last, Revision revision) {
  if (last.empty()) {
    last_ = revision;
  } else {
    pages_.emplace_back(std::move(last), revision);
  }
}

bool SnapshotPages::has_shown(const KvEntry& change) const {
  const auto page =
      std::ranges::lower_bound(pages_, change.key, {}, &std::pair<std::string, Revision>::first);
  if (page != pages_.end()) return change.revision <= page->second;
  return last_.has_value() && change.revision <= *last_;
}

void WatchSession::take(Request request) {
  {
    const std::lock_guard lock(mutex_);
    if (request.heartbeat.has_value()) {
      const auto answer = heard(*request.heartbeat, !has_start_);
      // Ahead of everything else, which is only as much as fits into a few outputs.
      if (answer.has_value()) pieces_.emplace_front(*answer);
    }
    if (request.start.has_value()) start(*std::move(request.start));
    if (request.goodbye) {
      goodbye_ = true;
      pieces_.clear();
      set_end({});
    } else if (!has_start_) {
      set_end(Error{Errc::invalid_argument, "start is missing in the first request"});
    }
  }
  go_on();
}

void WatchSession::start(Result<WatchWanted> wanted) {
  if (std::exchange(has_start_, true)) {
    return set_end(Error{Errc::invalid_argument, "start was sent twice; a call is one watch"});
  }
  if (!wanted.has_value()) return set_end(wanted.error());
  wanted_ = *std::move(wanted);
  begin_ = true;
}

void WatchSession::go_on() {
  while (true) {
    std::optional<NextCommand> next;
    {
      const std::lock_guard lock(mutex_);
      next = next_command();
    }
    if (!next.has_value()) break;
    std::visit([this](auto& command) { send(std::move(command)); }, *next);
  }
  pump();
}

template <class Wanted>
void WatchSession::send(Wanted command) {
  submit(state_->broker, std::move(command), Broker::Admission::reserved,
         [session = self()](Command* done) {
           {
             const std::lock_guard lock(session->mutex_);
             --session->under_way_;
             if (done == nullptr) {
               session->set_end(busy());
             } else {
               session->answered(*answer_of<Wanted>(done));
             }
           }
           session->go_on();
         });
}

std::optional<WatchSession::NextCommand> WatchSession::next_command() {
  std::optional<NextCommand> next;
  if (ending()) return next;
  if (begin_ && is_idle()) {
    next = make_watch();
  } else if (!next_page_.empty() && is_idle()) {
    next = make_snapshot();
  } else if (watch_ != KvWatchId{} && grant_is_due()) {
    next = make_grant();
  }
  if (next.has_value()) ++under_way_;
  return next;
}

/// Rarely, because a grant is a command; but early enough that the shard never waits for it: at
/// least half of the credit is with the shard or on its way there.
bool WatchSession::grant_is_due() const {
  return changes_written_ >= limits::kWatchChanges / 2 || bytes_written_ >= limits::kWatchBytes / 2;
}

KvWatchCommand WatchSession::make_watch() {
  begin_ = false;
  watch_ = KvWatchId{state_->broker.next_consumer_number().value};
  changes_written_ = 0;
  bytes_written_ = 0;
  KvWatchCommand command;
  command.request = {.watch = watch_,
                     .bucket = wanted_.bucket,
                     .filter = wanted_.filter,
                     .after = std::exchange(wanted_.after, std::nullopt),
                     .credit = limits::kWatchChanges,
                     .credit_bytes = limits::kWatchBytes,
                     .session = wanted_.session};
  command.page_entries_max = limits::kPageItems;
  command.page_bytes_max = limits::kPageBytes;
  command.sink = self();
  return command;
}

KvSnapshotCommand WatchSession::make_snapshot() {
  KvSnapshotCommand command;
  command.request = {.bucket = wanted_.bucket,
                     .prefix = wanted_.filter.text,
                     .after = std::exchange(next_page_, {}),
                     .entries_max = limits::kPageItems,
                     .bytes_max = limits::kPageBytes};
  command.watch = watch_;
  command.credit = limits::kWatchChanges;
  return command;
}

KvGrantCommand WatchSession::make_grant() {
  return {.bucket = wanted_.bucket,
          .watch = watch_,
          .changes = std::exchange(changes_written_, 0),
          .bytes = std::exchange(bytes_written_, 0)};
}

void WatchSession::answered(KvWatchCommand& done) {
  if (done.error.has_value()) {
    watch_ = {};
    return set_end(*done.error);
  }
  if (ending()) return;
  if (!std::exchange(started_told_, true)) {
    pieces_.emplace_back(Started{.resumed = !done.snapshot});
  }
  if (done.compacted) pieces_.emplace_back(Compacted{Compacted::Reason::resume});
  if (!done.snapshot) return;
  pages_ = std::make_unique<SnapshotPages>();
  show_page(done.page);
  // After a single page nothing is pending: all changes come after it.
  if (!next_page_.empty()) return;
  pages_.reset();
  pieces_.emplace_back(SnapshotEnd{done.page.revision});
}

void WatchSession::answered(KvSnapshotCommand& done) {
  if (ending() || watch_ != done.watch) return;
  if (done.error.has_value()) return set_end(*done.error);
  show_page(done.page);
}

void WatchSession::show_page(const KvPage& page) {
  for (const KvEntryRef& entry : page.entries) pieces_.emplace_back(entry);
  next_page_ = page.next;
  if (pages_ != nullptr) pages_->add(page.next, page.revision);
}

void WatchSession::told(const KvWatchEffect& effect) {
  {
    const std::lock_guard lock(mutex_);
    if (watch_ != effect.watch) return;
    if (effect.end.has_value()) watch_ = {};
    if (ending()) return;
    take_changes(effect);
    if (effect.end.has_value()) take_end(*effect.end);
  }
  go_on();
}

void WatchSession::take_changes(const KvWatchEffect& effect) {
  // A newer one follows at the end; without this one, both fit into one output.
  if (!pieces_.empty() && std::holds_alternative<CompleteTo>(pieces_.back())) pieces_.pop_back();
  for (const KvChange& change : effect.changes) {
    if (pages_ != nullptr && pages_->has_shown(*change.entry)) {
      ++changes_written_;
      bytes_written_ += static_cast<std::int64_t>(bytes_of(change.entry));
    } else {
      pieces_.emplace_back(change);
    }
  }
  for (const KvSessionLost& lost : effect.sessions_lost) {
    if (pieces_.size() < limits::kWatchPieces) pieces_.emplace_back(lost);
  }
  if (effect.end.has_value()) return;
  if (pages_ == nullptr) {
    pieces_.emplace_back(CompleteTo{effect.complete_to});
  } else if (pages_->is_complete(effect.complete_to)) {
    pages_.reset();
    pieces_.emplace_back(SnapshotEnd{effect.complete_to});
  }
}

void WatchSession::take_end(KvWatchEnd end) {
  if (end == KvWatchEnd::bucket_deleted) {
    return set_end(
        Error{Errc::bucket_not_found, fmt::format("bucket '{}' was deleted", wanted_.bucket)});
  }
  pages_.reset();
  next_page_.clear();
  pieces_.emplace_back(Compacted{Compacted::Reason::fell_behind});
  begin_ = true;
}

/// In the order of sending, which is the order of the parts.
WatchSession::Output WatchSession::take_output() {
  Output output;
  std::size_t bytes = 0;
  while (!pieces_.empty()) {
    Piece& piece = pieces_.front();
    bytes += bytes_of(piece);
    const bool in_order = output.empty() || piece.index() >= output.back().index();
    if (!output.empty() && (!in_order || bytes > limits::kFrameBytes)) break;
    if (const auto* change = std::get_if<KvChange>(&piece)) {
      ++changes_in_output_;
      bytes_in_output_ += static_cast<std::int64_t>(bytes_of(change->entry));
    }
    output.push_back(std::move(piece));
    pieces_.pop_front();
  }
  writing_output_ = true;
  return output;
}

void WatchSession::written(bool /*ok*/) {
  writing_output_ = false;
  changes_written_ += std::exchange(changes_in_output_, 0);
  bytes_written_ += std::exchange(bytes_in_output_, 0);
  const bool due = grant_is_due() || (is_idle() && (begin_ || !next_page_.empty()));
  // Not from here, because the lock is held.
  if (due) state_->background.post([session = self()] { session->go_on(); });
}

bool WatchSession::release(Lock& lock) {
  // A watch still on its way would arrive after its end, and stay for ever.
  if (under_way_ != 0 || watch_ == KvWatchId{}) return false;
  KvUnwatchCommand command{.bucket = wanted_.bucket,
                           .watch = std::exchange(watch_, {}),
                           .broken = !goodbye_ && (ended_by_client() || fell_silent_)};
  ++under_way_;
  lock.unlock();
  send(std::move(command));
  lock.lock();
  return true;
}

}  // namespace baton
