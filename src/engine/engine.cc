#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace baton::pipeline {

Engine::Engine(EngineOptions options, Source& source, Sink& sink, DeadLetterTarget& dead_letters)
    : options_(std::move(options)),
      source_(source),
      sink_(sink),
      gate_(options_.breaker, options_.storm, Random(options_.seed).fork("gate")),
      window_(options_.window_records, options_.window_bytes),
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

/// Decoders first: what they still hold goes to the lanes.
void Engine::stop_threads() {
  for (const auto& queue : decoding_) queue->close();
  decoders_.clear();
  for (const auto& lane : lanes_) lane->queue().close();
  writers_.clear();
}

Result<Ending> Engine::run(const std::stop_token& stop) {
  start_threads();
  const Status started = source_.start(*this);
  if (!started.has_value()) return started.error();
  while (!stop.stop_requested() && !early_end().has_value()) {
    keep_house();
    look_for_end();
  }
  // Revokes every partition, which waits for what is in flight, as far as the sink is there.
  drain_end_ = boot_time() + options_.drain;
  stopping_ = true;
  window_.look_again();
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(options_.drain);
  const Status stopped = source_.stop(time);
  abandoned_ = true;
  stop_threads();
  if (failure_.has_value()) return *failure_;
  if (early_end_.has_value()) return *early_end_;
  return !stopped.has_value() || undrained_ ? Ending::undrained : Ending::drained;
}

void Engine::look_for_end() {
  std::optional<Ending> end;
  if (gate_.outage_is_too_long()) {
    log(true, "the sink is out for longer than max_outage: ending");
    end = Ending::outage;
  } else if (is_fenced_for_good()) {
    log(true,
        "the sink holds another for the owner of a partition that is ours: ending, so that it is "
        "claimed anew. Is there a second pipeline of this name, with another group?");
    end = Ending::fenced;
  }
  const std::scoped_lock lock(mutex_);
  early_end_ = failure_.has_value() ? Ending::source_failed : end;
}

std::optional<Ending> Engine::early_end() const {
  const std::scoped_lock lock(mutex_);
  return early_end_;
}

/// One that was away for a while is told so by the sink first, and soon by the source. If the
/// source does not, two of us have asked the sink at once, and the other one came second.
bool Engine::is_fenced_for_good() {
  const std::scoped_lock lock(mutex_);
  const bool fenced = std::ranges::any_of(assignments_, [](const auto& one) {
    return one.second->fenced() && !one.second->revoking();
  });
  if (!fenced) fenced_since_.reset();
  if (fenced && !fenced_since_.has_value()) fenced_since_ = boot_time();
  return fenced && boot_time() - *fenced_since_ > options_.fenced_max;
}

void Engine::keep_house() {
  constexpr Duration kStep = std::chrono::milliseconds(20);
  probe();
  follow_gate();
  tell_outages();
  if (const Instant now = boot_time(); now >= commit_at_) {
    commit_at_ = now + options_.commit_interval;
    commit();
    measure();
  }
  std::this_thread::sleep_for(std::min(kStep, options_.commit_interval));
}

/// How many records end in a second, smoothed over some of them.
void Engine::measure() {
  constexpr Duration kSample = std::chrono::seconds(1);
  constexpr double kFresh = 0.3;
  const Instant now = boot_time();
  if (now - measured_at_ < kSample) return;
  const double passed = std::chrono::duration<double>(now - measured_at_).count();
  const std::uint64_t ended = counters_.ended();
  const double rate = static_cast<double>(ended - ended_) / passed;
  rate_ = ended_ == 0 ? rate : (rate_ * (1 - kFresh)) + (rate * kFresh);
  measured_at_ = now;
  ended_ = ended;
}

void Engine::probe() {
  const std::optional<Instant> at = gate_.probe_at();
  if (!at.has_value() || boot_time() < *at) return;
  const std::optional<flow::SinkError> error = sink_.probe();
  if (!error.has_value()) {
    log(false, "the sink answers again: trying one batch");
    return gate_.probed(std::nullopt);
  }
  gate_.probed(error->text);
}

/// An open breaker pauses the source; membership stays. Half open, it needs a real batch, and after
/// a rebalance there may be none here: then the source has to bring one.
void Engine::follow_gate() {
  const bool closed = gate_.closed();
  const bool on_trial = !closed && gate_.shown().state == flow::Breaker::State::half_open &&
                        (!paused_ || window_.records() == 0);
  const bool should_pause = !closed && !on_trial;
  if (should_pause == paused_) return;
  paused_ = should_pause;
  if (paused_) {
    source_.pause();
  } else {
    log(false, closed ? "the sink takes batches again" : "the trial needs a batch: fetching one");
    source_.resume();
  }
}

void Engine::tell_outages() {
  const std::uint64_t outages = gate_.outages();
  if (counters_.outages.exchange(outages) == outages) return;
  log(true, fmt::format("the sink is out, waiting: {}", gate_.shown().why));
}

void Engine::commit() {
  std::vector<std::shared_ptr<Assignment>> all;
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

std::shared_ptr<Assignment> Engine::find(std::uint32_t partition) const {
  const std::scoped_lock lock(mutex_);
  const auto found = assignments_.find(partition);
  return found == assignments_.end() ? nullptr : found->second;
}

std::optional<SinkMarks> Engine::claim(std::uint32_t partition, std::int64_t next) {
  // To a sink that is out each question takes long, and the first one's answer is everybody's.
  const std::scoped_lock one_at_a_time(claims_);
  if (gate_.is_out()) return std::nullopt;
  auto claimed = sink_.claim(partition, next);
  if (claimed.has_value()) {
    gate_.succeeded();  // A claim is a transaction, and as good as a batch.
    return *std::move(claimed);
  }
  const flow::SinkError& error = claimed.error();
  const std::string why = fmt::format("partition {} cannot be claimed: {}{}{}", partition,
                                      error.code, error.code.empty() ? "" : ": ", error.text);
  if (error.error_class != flow::ErrorClass::config) {
    gate_.open(why);
    return std::nullopt;
  }
  if (gate_.closed()) log(true, why);
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
  assignment = std::make_shared<Assignment>(partition, epoch, next, std::move(marks));
  return next;
}

std::uint32_t Engine::lane_of(const Record& record) const {
  switch (options_.order) {
    case Order::key:
      // Without a key there is nothing to keep in order but the partition.
      if (!record.key.empty())
        return static_cast<std::uint32_t>(hash64(record.key) % options_.lanes);
      [[fallthrough]];
    case Order::partition: return record.partition % options_.lanes;
    case Order::none: break;
  }
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(record.offset) % options_.lanes);
}

bool Engine::is_unwanted(const Assignment& assignment) const {
  return assignment.revoking() || stopping_ || abandoned_;
}

void Engine::hand_on(std::vector<Items>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].empty()) decoding_[i]->push(std::exchange(parts[i], {}));
  }
}

bool Engine::deliver(std::uint32_t partition, std::vector<Record> records) {
  const std::shared_ptr<Assignment> assignment = find(partition);
  if (assignment == nullptr) return false;
  const auto unwanted = [&] { return is_unwanted(*assignment); };
  std::vector<Items> parts(options_.workers);
  for (Record& record : records) {
    if (unwanted()) break;
    if (!window_.try_take(record.bytes())) {
      hand_on(parts);  // Before this one waits, or nobody would ever make room.
      if (!window_.take(record.bytes(), unwanted)) return false;
    }
    take_in(record, assignment, parts);
  }
  hand_on(parts);
  return !unwanted();
}

bool Engine::offer(std::uint32_t partition, std::vector<Record>& records) {
  const std::shared_ptr<Assignment> assignment = find(partition);
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

void Engine::take_in(Record& record, const std::shared_ptr<Assignment>& assignment,
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
  // A lane has one decoder, so that its order is kept.
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

std::optional<std::int64_t> Engine::revoked(std::uint32_t partition, bool lost) {
  const std::shared_ptr<Assignment> assignment = find(partition);
  if (assignment == nullptr) return std::nullopt;
  assignment->revoke();
  window_.look_again();
  const Duration patience =
      stopping_ ? std::max(drain_end_ - boot_time(), Duration::zero()) : options_.revoke_wait;
  // While the sink is out there is nothing to wait for.
  const bool idle = !lost && assignment->wait_idle(patience, [&] {
    return !gate_.closed() || assignment->dropped();
  });
  if (!idle && stopping_) undrained_ = true;
  assignment->drop();
  if (idle && assignment->is_marked()) {
    // The next owner may then have another number of lanes. If it fails, it starts from the marks.
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
                      .partitions = {},
                      .window_records = window_.records(),
                      .window_bytes = window_.bytes(),
                      .rate = rate_};
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
