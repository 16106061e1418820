#include "cluster/loglet/appender.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace baton::loglet {

Appender::Appender(Options options, const Begin& begin)
    : options_(options),
      boot_(begin.boot),
      node_(begin.node),
      next_position_(begin.read.state().position),
      chain_(begin.read.chain()),
      acceptor_(begin.read),
      sequence_(begin.sequence) {
  BATON_ASSERT(boot_ > begin.read.state().boot && options_.entry_bytes_max > kEntryHeaderBytes);
}

void Appender::append(Instant now, std::string_view facts) {
  const std::size_t cut = options_.entry_bytes_max - kEntryHeaderBytes;
  const bool fence = !std::exchange(fence_made_, true);
  BATON_ASSERT(!fence || facts.size() <= cut);
  std::uint32_t fragment = 0;
  do {
    const std::string_view part = facts.substr(0, cut);
    facts.remove_prefix(part.size());
    const EntryHeader header{.boot = boot_,
                             .position = next_position_,
                             .now = now,
                             .prev = chain_,
                             .node = node_,
                             .fragment = fragment++,
                             .last = facts.empty(),
                             .fence = fence,
                             .generation = acceptor_.generation()};
    Pending& pending = pending_.emplace_back();
    pending.bytes = encode_entry(header, part);
    bytes_unconfirmed_ += pending.bytes.size();
    chain_ = decode_entry(pending.bytes)->chain;
  } while (!facts.empty());
  ++next_position_;
}

Appender::Pending* Appender::find(std::uint64_t request) {
  const auto entry =
      std::ranges::find_if(pending_, [&](const Pending& one) { return one.request == request; });
  return entry == pending_.end() ? nullptr : &*entry;
}

void Appender::answered(std::uint64_t request, std::uint64_t sequence) {
  // Answers to what was sent before the last reading come too late to say anything.
  Pending* const pending = find(request);
  if (pending == nullptr || resolving_ || fenced_) return;
  pending->sequence = sequence;
  confirm_answered();
}

void Appender::confirm_answered() {
  while (!pending_.empty() && pending_.front().sequence != 0) {
    if (pending_.front().sequence != sequence_ + 1) return resolve();
    confirm_first(pending_.front().sequence);
  }
}

void Appender::confirm_first(std::uint64_t sequence) {
  const auto verdict = acceptor_.take(*decode_entry(pending_.front().bytes));
  BATON_ASSERT(verdict != Acceptor::Verdict::stray);
  if (verdict == Acceptor::Verdict::round) {
    place_ = {.sequence = sequence, .state = acceptor_.state()};
  }
  sequence_ = sequence;
  bytes_unconfirmed_ -= pending_.front().bytes.size();
  pending_.pop_front();
}

void Appender::refused(std::uint64_t request) {
  if (find(request) != nullptr && !resolving_) resolve();
}

void Appender::reconnected() {
  const bool sent =
      std::ranges::any_of(pending_, [](const Pending& one) { return one.request != 0; });
  if (sent || resolving_) resolve();
}

/// From here on only reading confirms, until it has found the end of the log.
void Appender::resolve() {
  if (fenced_) return;
  if (!std::exchange(resolving_, true)) ++resolutions_;
  read_wanted_ = true;
  for (Pending& pending : pending_) pending.request = pending.sequence = 0;
}

std::optional<Appender::Read> Appender::take_read_request() {
  if (fenced_ || !std::exchange(read_wanted_, false)) return std::nullopt;
  return Read{sequence_};
}

Status Appender::take_read(const std::vector<ReadEntry>& entries) {
  if (fenced_ || !resolving_) return {};
  for (const ReadEntry& read : entries) {
    if (read.sequence != sequence_ + 1) break;
    BATON_TRY(const EntryView entry, decode_entry(read.bytes));
    if (!pending_.empty() && pending_.front().bytes == read.bytes &&
        entry.header.prev == acceptor_.chain()) {
      confirm_first(read.sequence);
      continue;
    }
    sequence_ = read.sequence;
    Acceptor readers = acceptor_;
    if (readers.take(entry) == Acceptor::Verdict::stray) continue;
    // Another node's entry counts: what this one has made extends an older end of the log.
    fenced_ = true;
    return {};
  }
  if (entries.empty()) {
    resolving_ = false;
  } else {
    read_wanted_ = true;
  }
  return {};
}

std::vector<Appender::Send> Appender::take_sends(Instant now) {
  std::vector<Send> sends;
  if (fenced_ || resolving_) return sends;
  std::size_t bytes = 0;
  const std::size_t count = std::min(pending_.size(), options_.entries_in_flight_max);
  for (std::size_t i = 0; i < count; ++i) {
    Pending& pending = pending_[i];
    bytes += pending.bytes.size();
    if (i > 0 && bytes > options_.bytes_in_flight_max) break;
    if (pending.request != 0) continue;
    pending.request = next_request_++;
    pending.sent_at = now;
    sends.push_back({pending.request, sequence_ + i, pending.bytes});
  }
  return sends;
}

Instant Appender::next_deadline() const {
  Instant next = Instant::never();
  if (fenced_ || resolving_) return next;
  for (const Pending& pending : pending_) {
    if (pending.request == 0 || pending.sequence != 0) continue;
    next = std::min(next, pending.sent_at + options_.answer_timeout);
  }
  return next;
}

void Appender::tick(Instant now) {
  if (next_deadline() <= now) resolve();
}

std::string Appender::fingerprint() const {
  std::string print = fmt::format("{} {} {} {} {} {} {}", boot_, next_position_, sequence_,
                                  acceptor_.chain(), resolving_, read_wanted_, fenced_);
  for (const Pending& one : pending_) print += fmt::format(" {}:{}", one.request, one.sequence);
  return print;
}

}  // namespace baton::loglet
