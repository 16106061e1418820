#include "cluster/loglet/reading.h"

#include <algorithm>

#include <fmt/format.h>

namespace baton::loglet {
namespace {

// A copy that is behind knows less than this node did: others are asked for this long.
constexpr int kMissingMax = 40;

Error not_the_log(std::uint64_t sequence, std::string_view what) {
  return {Errc::journal_corrupt,
          fmt::format("the log is not the one that this node has read: entry {} {}; the log lost "
                      "its end, was purged, or was made anew",
                      sequence, what)};
}

}  // namespace

Reader::Reader(Patience patience, Loglet& engine, const Place& from, std::uint32_t generation)
    : patience_(patience),
      engine_(engine),
      from_(from),
      place_(from),
      acceptor_(from.state, generation),
      sequence_(from.sequence == 0 ? 0 : from.sequence - 1),
      place_checked_(from.sequence == 0),
      call_(patience.read_timeout),
      silence_(patience.silence) {}

Status Reader::turn(Instant now, const Visit& visit) {
  bool reconnected = false;
  for (const Loglet::Answer& answer : engine_.take_answers()) {
    silence_.heard(false, now);
    reconnected = reconnected || answer.kind == Loglet::Answer::Kind::connected;
    if (answer.kind != Loglet::Answer::Kind::entries || !call_.take(answer)) continue;
    ask_at_ = {};
    BATON_TRY_STATUS(take(answer, visit));
    if (answer.entries.empty() || damaged_ > 0) ask_at_ = now + patience_.pause_max;
  }
  if (done_) return {};
  call_.repeat(engine_, reconnected, now);
  if (!call_.under_way() && now >= ask_at_) call_.begin(engine_, sequence_, now);
  if (call_.under_way()) silence_.asked(now);
  if (silence_.is_over(now)) engine_.redial();
  return {};
}

Status Reader::take(const Loglet::Answer& answer, const Visit& visit) {
  if (answer.entries.empty()) {
    if (place_checked_) {
      done_ = true;
    } else if (++missing_ > kMissingMax) {
      return not_the_log(from_.sequence, "is missing");
    }
    return {};
  }
  for (const StoredEntry& stored : answer.entries) {
    if (stored.sequence != sequence_ + 1) {
      return Error{
          Errc::journal_corrupt,
          fmt::format("the log begins with entry {}, and this node has read only up to entry {}: "
                      "the entries between them were trimmed or purged",
                      stored.sequence, sequence_)};
    }
    BATON_TRY_STATUS(take_entry(stored, visit));
    if (damaged_ > 0) return {};
  }
  return {};
}

Status Reader::take_entry(const StoredEntry& stored, const Visit& visit) {
  const Result<EntryView> entry = decode_entry(stored.bytes);
  if (!entry.has_value() && entry.error().code == Errc::malformed &&
      ++damaged_ <= patience_.damaged_max) {
    return {};  // It is read again: another copy may be sound.
  }
  if (!entry.has_value()) {
    return Error{Errc::journal_corrupt,
                 fmt::format("entry {} of the log: {}", stored.sequence, entry.error().text)};
  }
  damaged_ = 0;
  if (!place_checked_) {
    BATON_TRY_STATUS(check_place(*entry));
    place_checked_ = true;
    sequence_ = stored.sequence;
    return {};
  }
  sequence_ = stored.sequence;
  if (acceptor_.take(*entry) != Acceptor::Verdict::round) return {};
  place_ = {.sequence = sequence_, .state = acceptor_.state()};
  return visit(acceptor_.round());
}

Status Reader::check_place(const EntryView& entry) const {
  if (entry.chain == from_.state.chain) return {};
  return not_the_log(from_.sequence, "is another one");
}

Instant Reader::next_deadline() const {
  if (done_) return Instant::never();
  const Instant call = call_.under_way() ? call_.deadline() : ask_at_;
  return std::min(call, silence_.deadline());
}

}  // namespace baton::loglet
