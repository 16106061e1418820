#include "pipeline/engine/lane.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "pipeline/engine/owned_partition.h"
#include "pipeline/engine/stored_letter.h"

namespace baton::pipeline {
namespace {

using flow::ErrorClass;
using flow::SinkError;
using Judge = flow::StormGuard::Judge;

constexpr std::uint32_t kLinesPerSecond = 5;
// Longer waits are left to the breaker, where they are visible.
constexpr std::chrono::seconds kInPlaceMax{10};

std::chrono::milliseconds wall_clock() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

std::size_t ended_of(std::span<const Item> items) {
  return static_cast<std::size_t>(
      std::ranges::count_if(items, [](const Item& item) { return item.fate != Fate::open; }));
}

std::string reason(const SinkError& error) {
  return fmt::format("{}{}{}", error.code, error.code.empty() ? "" : ": ", error.text);
}

/// The key for log lines: the document's key, or else the record's.
std::string_view shown_key(const Item& item) {
  constexpr std::size_t kShown = 128;
  const std::string_view key = item.prepared != nullptr ? item.prepared->key() : item.rejection.key;
  return (key.empty() ? std::string_view(item.record.key) : key).substr(0, kShown);
}

}  // namespace

Lane::Lane(LaneContext context, std::unique_ptr<LaneWriter> writer, Random random)
    : context_(std::move(context)),
      options_(context_.options()),
      writer_(std::move(writer)),
      random_(random) {}

void Lane::run() {
  while (true) {
    options_ = context_.options();
    const std::size_t records =
        std::max<std::size_t>(1, options_->batch_records * context_.gate->batch_percent() / 100);
    Items items = queue_.pop({.records = records,
                              .bytes = options_->batch_bytes,
                              .linger = options_->linger,
                              .no_more_come = [this] { return context_.window->is_full(); }});
    if (items.empty()) return;
    process(items);
  }
}

void Lane::process(Items& items) {
  // Rejected records are buried before any record behind them is written: a mark in the sink that
  // moves past a record says that the record is finished.
  count_poison(items);
  bury(items);
  write(items);
  bury(items);
  finish(items);
}

/// True if no partition waits for these records any more.
bool Lane::gives_up(std::span<const Item> items) const {
  return context_.abandoned() ||
         std::ranges::all_of(items, [](const Item& item) { return item.assignment->dropped(); });
}

void Lane::write(Part items) {
  std::vector<Part> parts{items};  // The last part is the next.
  // If no partition waits for one part any more, the other parts go on: they may belong to
  // partitions that are still assigned.
  while (!parts.empty() && !context_.abandoned()) {
    const Part part = parts.back();
    parts.pop_back();
    write_part(part, parts);
  }
}

Lane::Part Lane::pending(Part part) {
  const auto is_pending = [](Item& item) {
    if (item.prepared == nullptr || item.fate != Fate::open) return false;
    if (item.assignment->dropped()) return false;  // The partition belongs to another process now.
    if (item.assignment->is_marked() && item.record.offset < item.assignment->mark(item.lane)) {
      item.fate = Fate::applied;  // By an attempt whose result was never received.
      return false;
    }
    return true;
  };
  const auto rest = std::ranges::stable_partition(part, is_pending);
  return {part.begin(), rest.begin()};
}

void Lane::write_part(Part part, std::vector<Part>& parts) {
  for (std::uint32_t attempt = 0;;) {
    const Part waiting = pending(part);
    if (waiting.empty() || !context_.gate->wait([&] { return gives_up(waiting); })) return;
    const Part batch = pending(waiting);  // Some partitions may have been revoked meanwhile.
    if (batch.empty()) return context_.gate->give_back();
    for (Item& item : batch) ++item.attempts;
    const std::optional<SinkError> error = writer_->write(batch);
    // Halves are written in the order of the records, so these are the good records before the next
    // poison.
    context_.gate->passed(Judge::sink, ended_of(batch));
    if (!error.has_value()) {
      context_.gate->succeeded();
      ++context_.counters->batches;
      return;
    }
    switch (judge(batch, *error, attempt)) {
      case Verdict::again: continue;
      case Verdict::over: return;
      case Verdict::halve:
        parts.push_back(batch.subspan(batch.size() / 2));
        parts.push_back(batch.first(batch.size() / 2));
        return;
    }
  }
}

Lane::Verdict Lane::judge(Part batch, const SinkError& error, std::uint32_t& attempt) {
  ++context_.counters->errors.at(std::to_underlying(error.error_class));
  switch (error.error_class) {
    case ErrorClass::config: context_.gate->halt(reason(error)); return Verdict::again;
    case ErrorClass::fenced:
      // The rest of the batch, if any, is written without the records of lost partitions.
      context_.log(true, fmt::format("another worker has taken over: {}", reason(error)));
      context_.gate->succeeded();
      return Verdict::again;
    case ErrorClass::outage:
    case ErrorClass::retry: return judge_outage(batch, error, attempt);
    case ErrorClass::poison:
    case ErrorClass::duplicate:
    case ErrorClass::unknown: break;
  }
  // The sink has answered, so it is available, even if it rejects the records.
  context_.gate->succeeded();
  return judge_records(batch, error, attempt);
}

Lane::Verdict Lane::judge_outage(Part batch, const SinkError& error, std::uint32_t& attempt) {
  if (error.halve_batch && batch.size() > 1) {
    context_.gate->failed(reason(error), error.retry_after);
    return Verdict::halve;
  }
  ++context_.counters->retries;
  if (++attempt <= options_->retries && error.retry_after <= kInPlaceMax) {
    context_.gate->failed(reason(error), error.retry_after);
    const Duration wait = std::max(options_->backoff.wait(attempt, random_), error.retry_after);
    return pause(wait, batch) ? Verdict::again : Verdict::over;
  }
  context_.gate->open(reason(error), error.retry_after);
  return Verdict::again;
}

Lane::Verdict Lane::judge_records(Part batch, const SinkError& error, std::uint32_t& attempt) {
  if (batch.size() > 1) {
    ++context_.counters->isolations;
    return Verdict::halve;
  }
  Item& item = batch.front();
  if (error.error_class == ErrorClass::duplicate) {
    item.fate = Fate::duplicate;
    context_.gate->passed(Judge::sink, 1);
    return Verdict::over;
  }
  if (error.error_class == ErrorClass::unknown && ++attempt < options_->unknown_attempts) {
    const Duration wait = options_->backoff.wait(attempt, random_);
    return pause(wait, batch) ? Verdict::again : Verdict::over;
  }
  item.rejection = {.stage = "sink",
                    .code = error.code,
                    .text = error.text,
                    .key = std::string(item.prepared->key())};
  item.prepared.reset();
  admit_poison(Judge::sink, batch, {});
  bury(batch);
  return Verdict::over;
}

/// False: waiting is useless.
bool Lane::pause(Duration time, Part items) {
  constexpr Duration kLook = std::chrono::milliseconds(20);
  for (; time > Duration::zero(); time -= kLook) {
    if (gives_up(items)) return false;
    std::this_thread::sleep_for(std::min(time, kLook));
  }
  return true;
}

bool Lane::is_to_be_buried(const Item& item) const {
  if (item.assignment->dropped()) return false;
  if (item.fate == Fate::duplicate) return options_->duplicates_are_dead_letters;
  return item.fate == Fate::open && item.prepared == nullptr;
}

DeadLetter Lane::letter_of(const Item& item) const {
  const bool duplicate = item.fate == Fate::duplicate;
  return {.record = &item.record,
          .error_class = duplicate ? ErrorClass::duplicate : ErrorClass::poison,
          .code = item.rejection.code,
          .text = duplicate ? "it is in the sink already" : item.rejection.text,
          .stage = duplicate ? "sink" : item.rejection.stage,
          .attempts = item.attempts,
          .first_seen = item.record.timestamp,
          .last_seen = wall_clock(),
          .source = options_->source,
          .pipeline = options_->pipeline,
          .redrives = redrives_of(item.record)};
}

/// In the order of the records, so that good records in between distinguish a storm from bad luck.
void Lane::count_poison(Part items) {
  std::size_t good = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!is_to_be_buried(items[i])) {
      ++good;
      continue;
    }
    context_.gate->passed(Judge::decoder, std::exchange(good, 0));
    admit_poison(Judge::decoder, items.subspan(i, 1), items.first(i));
  }
  context_.gate->passed(Judge::decoder, good);
}

/// The guard stops before a letter is written, not after.
void Lane::admit_poison(Judge judge, Part one, Part before) {
  // A record that was sent back does not count again.
  if (redrives_of(one.front().record) > 0) return;
  while (!context_.gate->admit_poison(judge)) {
    bury(before);  // They were admitted, so they are written, and an operator sees progress.
    if (!context_.gate->wait_while_halted([&] { return gives_up(one); })) return;
  }
}

void Lane::bury(Part items) {
  const auto rest = std::ranges::stable_partition(
      items, [this](const Item& item) { return is_to_be_buried(item); });
  const Part dead(items.begin(), rest.begin());
  if (dead.empty() || context_.abandoned()) return;
  std::vector<DeadLetter> letters;
  letters.reserve(dead.size());
  for (const Item& item : dead) letters.push_back(letter_of(item));
  const bool written = write_letters(dead, letters);
  for (Item& item : dead) {
    if (item.fate == Fate::dead_lettered) continue;
    // A record is not finished until its dead letter is written, whatever the sink says about it.
    item.fate = Fate::open;
    if (written) confirm(item);
  }
}

void Lane::confirm(Item& item) {
  item.fate = Fate::dead_lettered;
  ++context_.counters->dead_letters;
}

bool Lane::write_letters(Part dead, std::span<const DeadLetter> letters) {
  bool failing = false;
  const auto set_failing = [&](bool now) {
    if (std::exchange(failing, now) && !now) context_.gate->letters_over();
  };
  for (std::uint32_t attempt = 1; !letters.empty(); ++attempt) {
    const Status status = context_.dead_letters->write(letters);
    if (status.has_value()) break;
    if (status.error().code == Errc::invalid_argument) {
      set_failing(false);
      if (!halt_on_refusal(dead, letters)) return false;
      continue;
    }
    const std::string why =
        fmt::format("dead letters cannot be written: {}", to_string(status.error()));
    if (!failing) context_.gate->letters_failed(why);
    set_failing(true);
    if (pause(options_->backoff.wait(attempt, random_), dead)) continue;
    set_failing(false);
    return false;
  }
  set_failing(false);
  return true;
}

bool Lane::halt_on_refusal(Part dead, std::span<const DeadLetter>& letters) {
  for (; !letters.empty(); letters = letters.subspan(1)) {
    const Status status = context_.dead_letters->write(letters.first(1));
    if (status.has_value()) {
      confirm(dead[dead.size() - letters.size()]);
      continue;
    }
    if (status.error().code != Errc::invalid_argument) return true;  // An outage, not a refusal.
    const Record& record = *letters.front().record;
    const std::string why = fmt::format(
        "the dead letter of partition {}, offset {} ({} bytes) is refused by {}, for good: {}",
        record.partition, record.offset, record.bytes(), context_.dead_letters->name(),
        to_string(status.error()));
    context_.gate->halt(why);
    return context_.gate->wait_while_halted([&] { return gives_up(dead); });
  }
  return true;
}

/// Logs what happened to one record, by its key; the number of such lines per second is limited.
void Lane::tell(const Item& item) {
  if (item.fate != Fate::duplicate && item.fate != Fate::dead_lettered) return;
  const Instant now = boot_time();
  if (now - told_at_ > std::chrono::seconds(1)) {
    if (told_ > kLinesPerSecond) {
      context_.log(false, fmt::format("and {} more like this", told_ - kLinesPerSecond));
    }
    told_at_ = now;
    told_ = 0;
  }
  if (++told_ > kLinesPerSecond) return;
  const Record& record = item.record;
  const bool duplicate = item.fate == Fate::duplicate;
  context_.log(!duplicate, fmt::format("{}: key '{}', partition {}, offset {}{}{}",
                                       duplicate ? "duplicate" : "dead letter", shown_key(item),
                                       record.partition, record.offset, duplicate ? "" : ": ",
                                       item.rejection.text.substr(0, 512)));
}

void Lane::finish(Items& items) {
  // Before the records count as finished: a drain that ends has told the source about all of them.
  context_.ended(items);
  std::size_t bytes = 0;
  for (Item& item : items) {
    bytes += item.record.bytes();
    switch (item.fate) {
      case Fate::applied: ++context_.counters->applied; break;
      case Fate::duplicate: ++context_.counters->duplicates; break;
      case Fate::dead_lettered: break;
      case Fate::open: ++context_.counters->dropped; continue;
    }
    tell(item);
    item.assignment->done(item.ticket);
  }
  context_.window->give_back(items.size(), bytes);
  items.clear();
}

}  // namespace baton::pipeline
