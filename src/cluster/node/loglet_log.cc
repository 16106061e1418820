#include "cluster/node/loglet_log.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/assert.h"

namespace baton::cluster {
namespace {

using loglet::Acceptor;
using loglet::Appender;
using loglet::Place;
using loglet::Reader;

// The largest request, and the acks of its round.
constexpr std::uint64_t kRoundBytesMax = std::uint64_t{36} << 20U;
constexpr std::uint64_t kMarkEveryBytes = std::uint64_t{256} << 10U;
/// The thread wakes at least this often, so that nothing depends on a single wake-up.
constexpr Duration kLookAgain = std::chrono::milliseconds{500};
constexpr Duration kReadAgain = std::chrono::milliseconds{200};

/// A clock that never jumps, only for durations.
Instant steady() {
  return {std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())
              .count()};
}

Error another_node() { return {Errc::position_taken, "another node has taken the shard over"}; }

}  // namespace

LogletLog::LogletLog(LogletLogOptions options, std::unique_ptr<loglet::Loglet> engine, Disk& disk,
                     PartitionFolders partitions)
    : options_(std::move(options)),
      disk_(disk),
      partitions_(std::move(partitions)),
      engine_(std::move(engine)) {
  engine_->set_wake([this] { wake(); });
}

LogletLog::~LogletLog() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  engine_.reset();
}

void LogletLog::wake() const {
  const std::scoped_lock lock(mutex_);
  news_ = true;
  news_came_.notify_all();
}

void LogletLog::wait_for_news(Instant until) const {
  std::unique_lock lock(mutex_);
  const Duration wait = std::clamp<Duration>(until - steady(), Duration{0}, kLookAgain);
  news_came_.wait_for(lock, wait, [&] { return news_; });
  news_ = false;
}

std::uint64_t LogletLog::round_bytes_max() const { return kRoundBytesMax; }

Position LogletLog::next() const {
  const std::scoped_lock lock(mutex_);
  return next_;
}

/// Called with the mutex held.
void LogletLog::note(const Place& place) const {
  if (marks_.empty() || log_bytes_ - marks_.back().bytes >= kMarkEveryBytes) {
    marks_.push_back({.place = place, .bytes = log_bytes_});
  }
}

Status LogletLog::read(Position from, const std::function<Status(const Round&)>& visit) const {
  BATON_ASSERT(!thread_.joinable());
  BATON_TRY(const std::optional<LogMark> kept, read_log_mark(disk_, options_.mark_file));
  LogMark mark = kept.value_or(LogMark{});
  // A checkpoint that is behind the mark is a folder that somebody put together.
  if (mark.place.state.position > from.value) mark = {};
  const Instant until = steady() + options_.read_patience;
  while (true) {
    BATON_TRY_STATUS(read_once(mark, from, visit));
    const Position found = next();
    if (found >= from) return {};
    // The copy that answered may be behind.
    if (steady() >= until) {
      return Error{Errc::journal_corrupt,
                   fmt::format("the log ends at round {}, and this node has applied up to round "
                               "{}: the log lost its end, or was purged",
                               found.value, from.value)};
    }
    wait_for_news(steady() + kReadAgain);
  }
}

/// Reads from the mark to the end. Visits the rounds from `first` on.
Status LogletLog::read_once(const LogMark& from, Position first,
                            const std::function<Status(const Round&)>& visit) const {
  {
    const std::scoped_lock lock(mutex_);
    log_bytes_ = from.bytes;
    marks_.assign(1, from);
  }
  Reader reader(options_.pump.patience, *engine_, from.place, options_.generation);
  std::uint64_t sequence = reader.sequence();
  Instant until = steady() + options_.read_patience;
  const Reader::Visit take = [&](const Acceptor::AcceptedRound& round) -> Status {
    {
      const std::scoped_lock lock(mutex_);
      log_bytes_ += round.facts.size() + loglet::kEntryHeaderBytes;
      note(reader.place());
    }
    if (round.position < first.value) return {};
    return visit({.position = Position{round.position}, .now = round.now, .facts = round.facts});
  };
  while (!reader.done()) {
    BATON_TRY_STATUS(reader.turn(steady(), take));
    if (std::exchange(sequence, reader.sequence()) != reader.sequence()) {
      until = steady() + options_.read_patience;
    } else if (steady() >= until) {
      return Error{Errc::unavailable, fmt::format("the log does not answer, for {} now",
                                                  format_duration(options_.read_patience))};
    }
    if (!reader.done()) wait_for_news(reader.next_deadline());
  }
  const std::scoped_lock lock(mutex_);
  begin_ = Appender::Begin{
      .sequence = reader.sequence(), .read = reader.acceptor(), .boot = 0, .node = options_.node};
  next_ = Position{reader.acceptor().state().position};
  return {};
}

Status LogletLog::append(const NewRound& round) {
  if (round.facts.size() > kRoundBytesMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("a round of {} bytes; the log takes at most {}", round.facts.size(),
                             kRoundBytesMax)};
  }
  {
    const std::scoped_lock lock(mutex_);
    if (fenced_ || round.expected != next_) return another_node();
    if (!thread_.joinable()) {
      BATON_ASSERT(begin_.has_value());
      Appender::Begin begin = *begin_;
      // Not the boot that follows what was read: the reader was told less than there is.
      if (round.epoch <= begin.read.state().boot) return another_node();
      begin.boot = round.epoch;
      confirmed_ = next_;
      pump_ = std::make_unique<loglet::Pump>(options_.pump, *engine_, begin);
      thread_ = std::thread([this] { run(); });
    }
    if (confirmed_ == next_) confirmed_at_ = steady();
    inbox_.push_back({.now = round.now, .facts = std::string(round.facts)});
    inbox_bytes_ += round.facts.size() + loglet::kEntryHeaderBytes;
    next_ = Position{next_.value + 1};
  }
  wake();
  return {};
}

void LogletLog::run() {
  while (true) {
    std::deque<Taken> taken;
    {
      const std::scoped_lock lock(mutex_);
      if (stopping_) return;
      taken = std::exchange(inbox_, {});
      // From here on the pump counts them.
      unconfirmed_bytes_ += std::exchange(inbox_bytes_, 0);
    }
    for (const Taken& round : taken) pump_->append(round.now, round.facts);
    pump_->turn(steady());
    publish();
    wait_for_news(pump_->next_deadline());
  }
}

void LogletLog::publish() {
  const Appender& appender = pump_->appender();
  const std::scoped_lock lock(mutex_);
  const Position confirmed{appender.confirmed()};
  const std::uint64_t bytes = appender.bytes_unconfirmed();
  log_bytes_ += unconfirmed_bytes_ - std::min(unconfirmed_bytes_, bytes);
  if (confirmed != confirmed_) {
    note(appender.place());
    confirmed_at_ = steady();
  }
  confirmed_ = confirmed;
  unconfirmed_bytes_ = bytes;
  fenced_ = appender.fenced();
  broken_ = pump_->broken();
  unable_ = pump_->unable();
  changed_.notify_all();
}

Result<Position> LogletLog::sync() {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) return next_;
  const Position wanted = next_;
  const auto is_settled = [&] { return confirmed_ >= wanted || fenced_ || broken_.has_value(); };
  // Goes on for as long as rounds are confirmed.
  while (!is_settled() && steady() < confirmed_at_ + options_.confirm_patience) {
    changed_.wait_for(lock, confirmed_at_ + options_.confirm_patience - steady());
  }
  if (confirmed_ >= wanted) return confirmed_;
  if (broken_.has_value()) return *broken_;
  if (fenced_) return another_node();
  return Error{Errc::unavailable, fmt::format("the shard's log has confirmed nothing for {}{}{}",
                                              format_duration(options_.confirm_patience),
                                              unable_.has_value() ? ": " : "",
                                              unable_.has_value() ? unable_->text : "")};
}

Status LogletLog::trim(Position before) {
  LogMark mark;
  {
    const std::scoped_lock lock(mutex_);
    while (marks_.size() > 1 && marks_[1].place.state.position <= before.value) marks_.pop_front();
    if (marks_.empty() || marks_.front().place.state.position > before.value) return {};
    mark = marks_.front();
  }
  if (mark.place.sequence == 0) return {};
  return write_log_mark(disk_, options_.mark_file, mark);
}

std::uint64_t LogletLog::bytes_since(Position from) const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t before = 0;
  for (const LogMark& mark : marks_) {
    if (mark.place.state.position > from.value) break;
    before = mark.bytes;
  }
  return log_bytes_ + unconfirmed_bytes_ + inbox_bytes_ - before;
}

/// Called with the mutex held.
bool LogletLog::is_full() const {
  return log_bytes_ >= options_.log_bytes_max ||
         (unable_.has_value() && unable_->code == Errc::disk_full);
}

Journal::Room LogletLog::room() const {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t used = unconfirmed_bytes_ + inbox_bytes_;
  Journal::Room room{.additions = kRoundBytesMax, .everything = kRoundBytesMax};
  if (used != 0) {
    // A round may need as much as the reserve besides what it adds.
    const std::uint64_t most = options_.unconfirmed_bytes_max + options_.reserve_bytes;
    room.additions = most - std::min(used, most);
    room.everything = most + options_.reserve_bytes - std::min(used, most + options_.reserve_bytes);
  }
  if (is_full()) room.additions = 0;
  return room;
}

Status LogletLog::prepare() {
  const std::scoped_lock lock(mutex_);
  if (!is_full()) return {};
  if (unable_.has_value() && log_bytes_ < options_.log_bytes_max) {
    return Error{Errc::journal_full, unable_->text};
  }
  return Error{Errc::journal_full, fmt::format("the shard's log has {} bytes; the limit is {}",
                                               log_bytes_, options_.log_bytes_max)};
}

}  // namespace baton::cluster
