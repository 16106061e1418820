#include "pipeline/engine/engine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"

namespace baton::pipeline {
Engine::Engine(EngineOptions options, Source& source, Sink& sink, DeadLetterTarget& dead_letters)
    : options_(std::move(options)),
      source_(source),
      sink_(sink),
      gate_(options_.breaker, options_.storm, Random(options_.seed).fork("gate")),
      window_(options_.window_records, options_.window_bytes),
      outage_max_(options_.breaker.outage_max),
      lane_options_(std::make_shared<const LaneOptions>(options_.lane)) {
  const LaneContext context{
      .gate = &gate_,
      .window = &window_,
      .dead_letters = &dead_letters,
      .counters = &counters_,
      .options = [this] { return lane_options(); },
      .abandoned = [this] { return abandoned_.load(); },
      .ended = [this](std::span<const Item> items) { source_.ended(items); },
      .log = [this](bool warning, const std::string& text) { log(warning, text); }};
  for (std::uint32_t i = 0; i < options_.lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>(context, sink_.writer(i),
                                            Random(options_.seed).fork(fmt::format("lane {}", i))));
  }
  for (std::uint32_t i = 0; i < options_.workers; ++i) {
    decoding_.push_back(std::make_unique<ItemQueue>());
  }
}

Engine::~Engine() {
  abandoned_ = true;
  stop_threads();
}

void Engine::log(bool warning, const std::string& text) const {
  if (options_.log) options_.log(warning, text);
}

Duration Engine::outage_max() const {
  const std::scoped_lock lock(mutex_);
  return outage_max_;
}

std::shared_ptr<const LaneOptions> Engine::lane_options() const {
  const std::scoped_lock lock(mutex_);
  return lane_options_;
}

void Engine::reload(const EngineOptions& options) {
  {
    auto changed = std::make_shared<LaneOptions>(options.lane);
    const std::scoped_lock lock(mutex_);
    changed->pipeline = lane_options_->pipeline;
    changed->source = lane_options_->source;
    lane_options_ = std::move(changed);
    outage_max_ = options.breaker.outage_max;
  }
  gate_.set_options(options.breaker, options.storm);
  gate_.resume();
}

void Engine::start_threads() {
  for (const auto& queue : decoding_) {
    decoders_.emplace_back([this, &queue = *queue] { decode(queue); });
  }
  for (const auto& lane : lanes_) {
    writers_.emplace_back([&lane = *lane] { lane.run(); });
  }
}

/// Decoders stop first: the items that they hold go to the lanes.
void Engine::stop_threads() {
  for (const auto& queue : decoding_) queue->close();
  decoders_.clear();
  for (const auto& lane : lanes_) lane->queue().close();
  writers_.clear();
}

Result<Ending> Engine::run(const std::stop_token& stop) {
  start_threads();
  const Status started = start_source(stop);
  if (!started.has_value()) {
    if (const auto ended = early_end()) return *ended;
    const bool given_up = stop.stop_requested() && may_pass(started.error());
    return given_up ? Result<Ending>(Ending::drained) : started.error();
  }
  while (!stop.stop_requested() && !early_end().has_value()) {
    keep_house();
    look_for_end();
  }
  // Revokes every partition, which waits for records in flight while the sink is available.
  drain_end_ = boot_time() + options_.drain;
  stopping_ = true;
  window_.look_again();
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(options_.drain);
  const Status stopped = source_.stop(time);
  tell_of_gate();
  abandoned_ = true;
  stop_threads();
  if (failure_.has_value()) return *failure_;
  if (early_end_.has_value()) return *early_end_;
  return !stopped.has_value() || undrained_ ? Ending::undrained : Ending::drained;
}

std::optional<Ending> Engine::early_end() const {
  const std::scoped_lock lock(mutex_);
  return early_end_;
}

void Engine::keep_house() {
  constexpr Duration kStep = std::chrono::milliseconds(20);
  probe();
  follow_gate();
  follow_source();
  tell_of_gate();
  if (const Instant now = boot_time(); now >= commit_at_) {
    commit_at_ = now + options_.commit_interval;
    commit();
    measure();
  }
  std::this_thread::sleep_for(std::min(kStep, options_.commit_interval));
}

/// Records finished per second, smoothed.
void Engine::measure() {
  constexpr Duration kSample = std::chrono::seconds(1);
  constexpr double kFresh = 0.3;
  constexpr double kStandstill = 0.05;
  const Instant now = boot_time();
  if (now - measured_at_ < kSample) return;
  const double passed = std::chrono::duration<double>(now - measured_at_).count();
  const std::uint64_t ended = counters_.ended();
  const double rate = static_cast<double>(ended - ended_) / passed;
  moving_ = ended > ended_;
  rate_ = ended_ == 0 ? rate : (rate_ * (1 - kFresh)) + (rate * kFresh);
  if (!moving_ && rate_ < kStandstill) rate_ = 0;
  measured_at_ = now;
  ended_ = ended;
}

void Engine::commit() {
  std::vector<std::shared_ptr<OwnedPartition>> all;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [partition, assignment] : assignments_) all.push_back(assignment);
  }
  for (const auto& assignment : all) {
    const std::int64_t mark = assignment->progress().committable;
    const bool unchanged = mark == assignment->committed();
    if (unchanged || assignment->revoking() || !source_.is_ordered()) continue;
    const Status status = source_.commit(assignment->partition(), assignment->epoch(), mark);
    if (status.has_value()) {
      assignment->set_committed(mark);
    } else if (status.error().code != Errc::stale_epoch) {
      log(true, fmt::format("partition {} cannot be committed: {}", assignment->partition(),
                            to_string(status.error())));
    }
  }
}

std::shared_ptr<OwnedPartition> Engine::find(std::uint32_t partition) const {
  const std::scoped_lock lock(mutex_);
  const auto found = assignments_.find(partition);
  return found == assignments_.end() ? nullptr : found->second;
}

std::optional<SinkMarks> Engine::claim(std::uint32_t partition, std::int64_t next) {
  // A call to an unavailable sink takes long, and the first answer is valid for all partitions.
  const std::scoped_lock one_at_a_time(claims_);
  if (gate_.is_out()) return std::nullopt;
  auto claimed = sink_.claim(partition, next);
  if (claimed.has_value()) {
    gate_.succeeded();  // A claim is a transaction, so it proves as much as a batch.
    return *std::move(claimed);
  }
  const flow::SinkError& error = claimed.error();
  const std::string why = fmt::format("partition {} cannot be claimed: {}{}{}", partition,
                                      error.code, error.code.empty() ? "" : ": ", error.text);
  if (error.error_class != flow::ErrorClass::config) {
    gate_.open(why);
    return std::nullopt;
  }
  gate_.halt(why);
  return std::nullopt;
}

std::optional<std::int64_t> Engine::assigned(std::uint32_t partition, std::uint64_t epoch,
                                             std::int64_t next) {
  std::optional<SinkMarks> marks;
  if (options_.exactly_once) {
    marks = claim(partition, next);
    if (!marks.has_value()) return std::nullopt;
    next = marks->begin;
  }
  log(false, fmt::format("partition {} from offset {}, epoch {}", partition, next, epoch));
  const std::scoped_lock lock(mutex_);
  auto& assignment = assignments_[partition];
  if (assignment != nullptr) assignment->drop();
  assignment = std::make_shared<OwnedPartition>(partition, epoch, next, std::move(marks));
  return next;
}

std::uint32_t Engine::lane_of(const Record& record) const {
  switch (options_.order) {
    case Order::key:
      // Without a key, only the order within the partition is kept.
      if (!record.key.empty())
        return static_cast<std::uint32_t>(hash64(record.key) % options_.lanes);
      [[fallthrough]];
    case Order::partition: return record.partition % options_.lanes;
    case Order::none: break;
  }
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(record.offset) % options_.lanes);
}

bool Engine::is_unwanted(const OwnedPartition& assignment) const {
  return assignment.revoking() || stopping_ || abandoned_;
}

void Engine::hand_on(std::vector<Items>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].empty()) decoding_[i]->push(std::exchange(parts[i], {}));
  }
}

bool Engine::deliver(std::uint32_t partition, std::vector<Record> records) {
  const std::shared_ptr<OwnedPartition> assignment = find(partition);
  if (assignment == nullptr) return false;
  const auto unwanted = [&] { return is_unwanted(*assignment); };
  std::vector<Items> parts(options_.workers);
  for (Record& record : records) {
    if (unwanted()) break;
    if (!window_.try_take(record.bytes())) {
      hand_on(parts);  // Before this thread waits, or no room would ever be made.
      if (!window_.take(record.bytes(), unwanted)) return false;
    }
    take_in(record, assignment, parts);
  }
  hand_on(parts);
  return !unwanted();
}

bool Engine::offer(std::uint32_t partition, std::vector<Record>& records) {
  const std::shared_ptr<OwnedPartition> assignment = find(partition);
  if (assignment == nullptr) return false;
  std::vector<Items> parts(options_.workers);
  auto next = records.begin();
  for (; next != records.end() && !is_unwanted(*assignment); ++next) {
    if (!window_.try_take(next->bytes())) break;
    take_in(*next, assignment, parts);
  }
  records.erase(records.begin(), next);
  hand_on(parts);
  return !is_unwanted(*assignment);
}

void Engine::take_in(Record& record, const std::shared_ptr<OwnedPartition>& assignment,
                     std::vector<Items>& parts) {
  ++counters_.received;
  const std::uint32_t lane = lane_of(record);
  const auto ticket = source_.is_ordered() ? assignment->delivered(record.offset, record.timestamp)
                                           : assignment->delivered_next(record.timestamp);
  const bool replayed = assignment->is_marked() && record.offset < assignment->begin_mark(lane);
  if (replayed || record.tombstone) {
    ++(replayed ? counters_.replayed : counters_.filtered);
    assignment->done(ticket);
    return window_.give_back(1, record.bytes());
  }
  Item item;
  item.lane = lane;
  item.assignment = assignment;
  item.ticket = ticket;
  item.record = std::move(record);
  // A lane has one decoder, so that the lane's order is kept.
  parts[lane % options_.workers].push_back(std::move(item));
}

void Engine::decode(ItemQueue& queue) {
  constexpr std::size_t kChunk = 256;
  const std::unique_ptr<Preparer> preparer = sink_.preparer();
  while (true) {
    Items items = queue.pop({.records = kChunk, .bytes = std::size_t{8} << 20U});
    if (items.empty()) return;
    std::vector<Items> parts(options_.lanes);
    for (Item& item : items) {
      auto prepared = preparer->prepare(item.record);
      if (prepared.has_value()) {
        item.prepared = *std::move(prepared);
      } else {
        item.rejection = std::move(prepared).error();
      }
      const std::uint32_t lane = item.lane;
      parts[lane].push_back(std::move(item));
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i].empty()) lanes_[i]->queue().push(std::move(parts[i]));
    }
  }
}

void Engine::revoking(std::uint32_t partition) {
  if (const auto assignment = find(partition)) assignment->revoke();
  window_.look_again();
}

/// The next owner of the partition cannot read these records: dropped here, they would be lost. So
/// the group waits for the sink, unless the time to drain is over, or the sink itself has another
/// owner.
bool Engine::wait_for_last_copies(OwnedPartition& assignment) {
  const OwnedPartition::Progress before = assignment.progress();
  if (before.in_flight == 0) return true;
  if (assignment.dropped()) return false;
  const std::optional<std::int64_t> oldest = source_.oldest(assignment.partition());
  if (!oldest.has_value() || before.committable >= *oldest) return false;
  log(true,
      fmt::format("partition {} is to go to another member, but {} records from offset {} on "
                  "are in flight, and the source has none below {} any more: the partition is "
                  "kept until they are written",
                  assignment.partition(), before.in_flight, before.committable, *oldest));
  constexpr Duration kForEver = std::chrono::hours(24 * 365);
  return assignment.wait_idle(
      kForEver,
      [&] {
        const bool too_late = stopping_ && boot_time() >= drain_end_;
        return too_late || abandoned_ || assignment.dropped();
      },
      *oldest);
}

std::optional<std::int64_t> Engine::revoked(std::uint32_t partition, bool lost) {
  const std::shared_ptr<OwnedPartition> assignment = find(partition);
  if (assignment == nullptr) return std::nullopt;
  assignment->revoke();
  window_.look_again();
  const Duration patience =
      stopping_ ? std::max(drain_end_ - boot_time(), Duration::zero()) : options_.revoke_wait;
  // While the sink is unavailable, waiting is useless.
  bool idle = !lost && assignment->wait_idle(
                           patience, [&] { return !gate_.closed() || assignment->dropped(); });
  if (!idle) idle = wait_for_last_copies(*assignment);
  if (!idle && stopping_) undrained_ = true;
  assignment->drop();
  if (idle && assignment->is_marked()) {
    // After that the next owner may have another number of lanes. If this fails, the next owner
    // starts from the marks.
    (void)sink_.settle(partition, assignment->sink_epoch(), assignment->progress().committable);
  }
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) last_assignments_.push_back(assignment);
    const auto found = assignments_.find(partition);
    if (found != assignments_.end() && found->second == assignment) assignments_.erase(found);
  }
  if (lost) return std::nullopt;
  return assignment->progress().committable;
}

void Engine::failed(Error error) {
  const std::scoped_lock lock(mutex_);
  if (!failure_.has_value()) failure_ = std::move(error);
}

std::uint64_t Engine::left_open() const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t open = 0;
  for (const auto& [partition, assignment] : assignments_) open += assignment->progress().in_flight;
  for (const auto& assignment : last_assignments_) open += assignment->progress().in_flight;
  return open;
}

EngineStatus Engine::status() const {
  EngineStatus status{.gate = gate_.shown(),
                      .source = source_outage(),
                      .partitions = {},
                      .window_records = window_.records(),
                      .window_bytes = window_.bytes(),
                      .rate = rate_,
                      .moving = moving_};
  const std::vector<PartitionLag> ends = source_.ends();
  const std::scoped_lock lock(mutex_);
  for (const auto& [partition, assignment] : assignments_) {
    PartitionStatus one{.partition = partition,
                        .epoch = assignment->epoch(),
                        .committed = assignment->committed(),
                        .progress = assignment->progress(),
                        .end = std::nullopt};
    const auto end = std::ranges::find(ends, partition, &PartitionLag::partition);
    if (end != ends.end()) one.end = end->end;
    status.partitions.push_back(one);
  }
  return status;
}

}  // namespace baton::pipeline
