#include "pipeline/nats/nats_source.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/result.h"
#include "worker/nats/nats_version.h"
#include "worker/stores/deadline.h"

namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kPartitionsMax = 65'536;
constexpr std::size_t kFetchMax = 10'000;
constexpr coord::NatsVersion kVersionMin{2, 9, 0};
constexpr std::chrono::seconds kVersionTimeout{2};
constexpr milliseconds kWatch{100};

}  // namespace

NatsSource::~NatsSource() {
  watcher_ = {};
  drop_partitions();
  worker_.reset();
}

void NatsSource::drop_partitions() {
  std::vector<std::shared_ptr<NatsPartition>> all;  // Destroyed after the lock is released.
  const std::scoped_lock lock(mutex_);
  closing_ = true;
  all.reserve(partitions_.size() + ending_.size());
  for (const auto& [number, partition] : partitions_) all.push_back(partition);
  std::ranges::move(ending_, std::back_inserter(all));
  partitions_.clear();
  ending_.clear();
}

void NatsSource::log(bool warning, const std::string& text) const {
  if (options_.log) options_.log(warning, text);
}

std::string NatsSource::name() const { return fmt::format("nats:{}", options_.stream); }

Result<std::string> NatsSource::origin() {
  BATON_TRY(const auto stream,
            NatsStream::connect(options_.servers, options_.stream, options_.security));
  BATON_TRY(const NatsStream::Facts facts, stream->facts());
  return fmt::format("{}@{}", name(), facts.created_at_ns);
}

Status NatsSource::check_options() const {
  BATON_TRY_STATUS(check_nats_group(options_.group));
  if (options_.partitions == 0 || options_.partitions > kPartitionsMax) {
    return invalid_argument(fmt::format("partitions is not in 1..{}", kPartitionsMax));
  }
  if (options_.fetch == 0 || options_.fetch > kFetchMax) {
    return invalid_argument(fmt::format("fetch is not in 1..{}", kFetchMax));
  }
  if (options_.partitions > 1 &&
      options_.subject.find(kPartitionPlaceholder) == std::string::npos) {
    return invalid_argument(fmt::format("the subject '{}' has no {}, and there are {} partitions",
                                        options_.subject, kPartitionPlaceholder,
                                        options_.partitions));
  }
  if (options_.subject.empty()) return invalid_argument("the subject is empty");
  if (options_.stream.empty()) return invalid_argument("the stream has no name");
  return {};
}

Status NatsSource::check_subjects(const NatsStream::Facts& facts) const {
  if (!facts.keeps_read) {
    return Error{Errc::failed_precondition,
                 fmt::format("stream {} removes what is acknowledged (its retention is not "
                             "'limits'), so a new owner could not read it again",
                             options_.stream)};
  }
  for (std::uint32_t i = 0; i < options_.partitions; ++i) {
    const std::string subject = nats_subject(options_.subject, i);
    const bool is_there = std::ranges::any_of(
        facts.subjects, [&](const std::string& pattern) { return nats_covers(pattern, subject); });
    if (is_there) continue;
    return Error{Errc::failed_precondition,
                 fmt::format("stream {} does not keep {}, only {}", options_.stream, subject,
                             fmt::join(facts.subjects, ", "))};
  }
  return {};
}

Status NatsSource::start(SourceListener& listener) {
  BATON_TRY_STATUS(check_options());
  listener_ = &listener;
  BATON_TRY(stream_, NatsStream::connect(options_.servers, options_.stream, options_.security));
  BATON_TRY(const NatsStream::Facts facts, stream_->facts());
  BATON_TRY_STATUS(check_subjects(facts));
  client::WorkerOptions options;
  options.store = fmt::format("nats://{}", options_.servers);
  options.security = options_.security;
  options.group = options_.group;
  options.partitions = options_.partitions;
  options.timing = options_.timing;
  auto worker = client::Worker::open(options, callbacks());
  if (!worker.has_value()) return worker.error();
  worker_ = *std::move(worker);
  worker_ready_ = &*worker_;
  worker_ready_.notify_all();
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  return {};
}

void NatsSource::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto ended = worker_ready_.load()->wait(kWatch);
    if (!ended.has_value()) continue;
    if (stop.stop_requested()) return;
    const Error why =
        ended->has_value() ? Error{Errc::unavailable, "the worker has ended"} : ended->error();
    return listener_->failed(why);
  }
}

client::WorkerCallbacks NatsSource::callbacks() {
  client::WorkerCallbacks callbacks;
  callbacks.acquired = [this](PartitionNumber partition, Epoch epoch) {
    acquired(partition.value, epoch.value);
  };
  callbacks.revoking = [this](PartitionNumber partition, Epoch /*epoch*/,
                              milliseconds /*time_left*/) { revoke(partition.value, false); };
  callbacks.lost = [this](PartitionNumber partition, Epoch /*epoch*/, const std::string& why) {
    log(true, fmt::format("partition {} is lost: {}", partition.value, why));
    revoke(partition.value, true);
  };
  callbacks.note = [this](bool warning, const std::string& text) { log(warning, text); };
  return callbacks;
}

NatsPartitionContext NatsSource::context() {
  NatsPartitionContext context;
  context.stream = stream_;
  context.listener = listener_;
  context.group = options_.group;
  context.subject = options_.subject;
  context.from_next = options_.from_next;
  context.fetch = options_.fetch;
  context.paused = &paused_;
  context.may_act = [this](std::uint32_t partition, std::uint64_t epoch) {
    const client::Worker* worker = worker_ready_.load();
    return worker != nullptr && worker->may_act(PartitionNumber{partition}, Epoch{epoch});
  };
  context.stopped = [this](std::uint32_t partition, std::uint64_t epoch) {
    worker_ready_.wait(nullptr);
    worker_ready_.load()->stopped(PartitionNumber{partition}, Epoch{epoch});
  };
  context.log = [this](bool warning, const std::string& text) { log(warning, text); };
  return context;
}

void NatsSource::acquired(std::uint32_t partition, std::uint64_t epoch) {
  std::vector<std::shared_ptr<NatsPartition>> over;
  const std::scoped_lock lock(mutex_);
  if (closing_) return;
  auto& mine = partitions_[partition];
  if (mine != nullptr) ending_.push_back(std::move(mine));
  mine = std::make_shared<NatsPartition>(context(), partition, epoch);
  const auto rest = std::ranges::partition(
      ending_, [](const std::shared_ptr<NatsPartition>& one) { return !one->is_over(); });
  std::ranges::move(rest, std::back_inserter(over));
  ending_.erase(rest.begin(), rest.end());
}

void NatsSource::revoke(std::uint32_t partition, bool lost) {
  std::shared_ptr<NatsPartition> found;
  {
    const std::scoped_lock lock(mutex_);
    const auto at = partitions_.find(partition);
    if (at == partitions_.end()) return;
    found = at->second;
  }
  found->revoke(lost);
  // Only after it takes nothing any more, so that records that wait for room are not passed on.
  listener_->revoking(partition);
}

Status NatsSource::commit(std::uint32_t partition, std::uint64_t epoch, std::int64_t next) {
  std::shared_ptr<NatsPartition> found;
  {
    const std::scoped_lock lock(mutex_);
    const auto at = partitions_.find(partition);
    if (at != partitions_.end()) found = at->second;
  }
  if (found == nullptr || found->epoch() != epoch) {
    return Error{Errc::stale_epoch, fmt::format("partition {} is not ours", partition)};
  }
  return found->commit(next);
}

Status NatsSource::stop(milliseconds timeout) {
  if (!worker_.has_value()) return {};
  watcher_ = {};
  worker_->begin_close();
  const auto left = worker_->wait(timeout);
  drop_partitions();
  if (!left.has_value()) {
    return Error{Errc::deadline_exceeded, "the group was not left in time"};
  }
  if (!left->has_value()) return left->error();
  return {};
}

std::vector<PartitionLag> NatsSource::ends() const {
  std::vector<PartitionLag> result;
  const std::scoped_lock lock(mutex_);
  for (const auto& [number, partition] : partitions_) {
    const auto end = partition->end();
    if (end.has_value() && !partition->is_over()) result.push_back({number, *end});
  }
  return result;
}

std::optional<std::string> NatsSource::trouble() const {
  if (stream_ == nullptr || stream_->is_connected()) return std::nullopt;
  return fmt::format("no NATS server answers at {}", options_.servers);
}

Result<Findings> NatsSource::check() {
  BATON_TRY_STATUS(check_options());
  BATON_TRY(const auto stream,
            NatsStream::connect(options_.servers, options_.stream, options_.security));
  const std::vector<std::string> servers = stream->servers();
  const std::string server = servers.empty() ? options_.servers : servers.front();
  BATON_TRY(const coord::NatsVersion version,
            coord::ask_nats_version(server, coord::Deadline(kVersionTimeout)));
  if (version < kVersionMin) {
    return Error{Errc::failed_precondition,
                 fmt::format("the NATS server at {} is version {}; {} is the oldest that works",
                             server, to_string(version), to_string(kVersionMin))};
  }
  BATON_TRY(const NatsStream::Facts facts, stream->facts());
  BATON_TRY_STATUS(check_subjects(facts));
  BATON_TRY(const std::vector<std::string> names, stream->consumers());
  std::uint32_t begun = 0;
  for (std::uint32_t i = 0; i < options_.partitions; ++i) {
    const bool is_there = std::ranges::any_of(names, [&](const std::string& name) {
      return parse_nats_consumer(name, options_.group, i).has_value();
    });
    if (is_there) ++begun;
  }
  return Findings{
      fact(fmt::format("NATS {} at {}, with JetStream", to_string(version), server)),
      fact(fmt::format(
          "stream {}: {} messages, {} to {}; {} partitions of {}, of which group {} has "
          "begun {}",
          options_.stream, facts.messages, facts.first, facts.last, options_.partitions,
          options_.subject, options_.group, begun))};
}

}  // namespace baton::pipeline
