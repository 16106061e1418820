// One measurement of a running broker's streams, printed as one JSON object. bench/bench_stream.py
// starts the brokers, interleaves the rounds and reports; this program only makes the load and
// counts.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <baton/broker.h>
#include <baton/stream_producer.h>
#include <baton/v1/streams.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "connection.h"

namespace {

using baton::client::AppendResult;
using baton::client::Broker;
using baton::client::NewRecord;
using baton::client::StreamProducer;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
namespace v1 = baton::v1;

struct Options {
  std::string address = "127.0.0.1:7470";
  std::string stream = "bench";
  std::string mode = "append";  // append | read | handover
  std::string compression = "none";
  std::size_t size = 1024;
  std::size_t producers = 1;
  std::uint64_t count = 500'000;
  std::uint64_t groups = 10;
  std::uint64_t rounds = 100;
};

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "bench_stream_load: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T value_of(baton::Result<T> result) {
  if (!result.has_value()) die(result.error().text);
  return *std::move(result);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void report_rate(double seconds, std::uint64_t records, double cpu) {
  fmt::print(
      "{{\"seconds\": {:.6f}, \"messages\": {}, \"rate\": {:.1f}, \"client_cpu_us\": {:.3f}}}\n",
      seconds, records, static_cast<double>(records) / seconds,
      cpu * 1e6 / static_cast<double>(records));
}

/// Values that hardly compress, as real ones differ as well.
std::string make_value(std::size_t size, std::uint64_t number) {
  std::string value(size, '\0');
  std::uint64_t state = number * 0x9e3779b97f4a7c15ULL + 1;
  for (char& byte : value) {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    byte = static_cast<char>('a' + state % 26);
  }
  return value;
}

void append(const Options& options) {
  const std::uint64_t share = options.count / options.producers;
  std::atomic<std::uint64_t> confirmed{0};
  std::vector<std::string> values;
  for (std::uint64_t i = 0; i < 64; ++i) values.push_back(make_value(options.size, i));
  const Broker broker = value_of(Broker::open(baton::bench::connection_to(options.address)));
  std::vector<StreamProducer> producers;
  for (std::size_t i = 0; i < options.producers; ++i) {
    baton::client::StreamProducerOptions wanted;
    if (options.compression == "lz4") wanted.compression = baton::client::RecordCompression::lz4;
    if (options.compression == "zstd") wanted.compression = baton::client::RecordCompression::zstd;
    producers.push_back(value_of(broker.stream(options.stream).producer(wanted)));
  }
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (StreamProducer& one : producers) {
    threads.emplace_back([&, producer = &one] {
      for (std::uint64_t i = 0; i < share; ++i) {
        NewRecord record;
        record.value = values[i % values.size()];
        producer->send(std::move(record), [&](const AppendResult& result) {
          if (!result.ok()) die(result.error->text);
          confirmed.fetch_add(1, std::memory_order_relaxed);
        });
      }
      const auto flushed = producer->flush(milliseconds{120'000});
      if (!flushed.has_value()) die(flushed.error().text);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = since(start);
  if (confirmed != share * options.producers) die("not every record was confirmed");
  report_rate(seconds, confirmed, cpu_seconds() - cpu);
}

void read(const Options& options) {
  Broker client = value_of(Broker::open(baton::bench::connection_to(options.address)));
  const auto info = value_of(client.stream(options.stream).describe());
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  std::atomic<std::uint64_t> records{0};
  std::vector<std::thread> threads;
  for (std::uint32_t partition = 0; partition < info.partitions; ++partition) {
    threads.emplace_back([&, partition] {
      auto reader = client.stream(options.stream)
                        .read({.partition = baton::PartitionNumber{partition},
                               .records_max = options.count / info.partitions});
      while (auto batch = value_of(reader.next())) {
        records.fetch_add(batch->size(), std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = since(start);
  if (records == 0) die("there was nothing to read");
  report_rate(seconds, records, cpu_seconds() - cpu);
}

/// One Subscribe call, without the SDK, whose threads would be measured with it.
class Connection {
 public:
  explicit Connection(v1::StreamService::Stub& stub) : call_(stub.Subscribe(&context_)) {
    thread_ = std::thread([this] { run(); });
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    context_.TryCancel();
    thread_.join();
    call_->Finish();
  }

  void start(std::uint64_t id, const std::string& stream, const std::string& group) {
    v1::SubscribeRequest request;
    v1::SubscribeRequest::Start& start = *request.add_starts();
    start.set_id(id);
    start.set_stream(stream);
    start.set_group(group);
    start.set_single_active(true);
    start.add_partitions(1);
    write(request);
  }
  void leave(std::uint64_t id) {
    v1::SubscribeRequest request;
    request.add_unsubscribes()->set_id(id);
    write(request);
  }
  void wait_started(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds{60}, [&] { return started_ >= count; })) {
      die("subscriptions did not start");
    }
  }
  /// The time of the `count`-th activation.
  Clock::time_point wait_active(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds{60},
                           [&] { return active_.size() >= count; })) {
      die("no activation came");
    }
    return active_[count - 1];
  }
  std::uint64_t activations() {
    const std::scoped_lock lock(mutex_);
    return active_.size();
  }

 private:
  void write(const v1::SubscribeRequest& request) {
    const std::scoped_lock lock(write_mutex_);
    if (!call_->Write(request)) die("the connection broke");
  }
  void run() {
    v1::SubscribeResponse response;
    while (call_->Read(&response)) {
      const auto now = Clock::now();
      v1::SubscribeRequest replies;
      for (const v1::SubscribeResponse::Update& update : response.updates()) {
        if (!update.stepping_down()) continue;
        v1::SubscribeRequest::UpdateReply& reply = *replies.add_replies();
        reply.set_id(update.id());
        reply.set_partition(update.partition());
        reply.set_generation(update.generation());
      }
      if (replies.replies_size() > 0) write(replies);
      const std::scoped_lock lock(mutex_);
      started_ += static_cast<std::uint64_t>(response.started_size());
      for (const v1::SubscribeResponse::Update& update : response.updates()) {
        if (update.active()) active_.push_back(now);
      }
      for (const v1::SubscribeResponse::Closed& closed : response.closed()) {
        if (closed.has_reason()) die(closed.reason().text());
      }
      changed_.notify_all();
    }
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::SubscribeRequest, v1::SubscribeResponse>> call_;
  std::mutex write_mutex_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t started_ = 0;
  std::vector<Clock::time_point> active_;
  std::thread thread_;
};

double percentile(std::vector<double>& sorted, double part) {
  std::ranges::sort(sorted);
  const auto place = static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1));
  return sorted[place];
}

/// A second consumer joins partition 1 of a group, which moves the seat to it (1 mod 2), and
/// leaves, which moves it back; with `groups` other groups, each with a consumer of its own.
void handover(const Options& options) {
  const auto channel = baton::bench::channel_to(options.address);
  const auto stub = v1::StreamService::NewStub(channel);
  constexpr std::uint64_t kPerConnection = 1000;
  std::vector<std::unique_ptr<Connection>> others;
  for (std::uint64_t group = 0; group < options.groups; ++group) {
    if (group % kPerConnection == 0) {
      if (!others.empty()) others.back()->wait_started(kPerConnection);
      others.push_back(std::make_unique<Connection>(*stub));
    }
    others.back()->start(group % kPerConnection, options.stream, fmt::format("other-{}", group));
  }
  others.back()->wait_started((options.groups - 1) % kPerConnection + 1);
  Connection first(*stub);
  Connection second(*stub);
  first.start(1, options.stream, "measured");
  first.wait_active(1);
  std::vector<double> join;
  std::vector<double> leave;
  for (std::uint64_t round = 1; round <= options.rounds; ++round) {
    const auto joins = Clock::now();
    second.start(round, options.stream, "measured");
    join.push_back(
        std::chrono::duration<double, std::micro>(second.wait_active(round) - joins).count());
    const auto leaves = Clock::now();
    second.leave(round);
    leave.push_back(
        std::chrono::duration<double, std::micro>(first.wait_active(round + 1) - leaves).count());
  }
  fmt::print(
      "{{\"groups\": {}, \"messages\": {}, \"p50_us\": {:.1f}, \"p99_us\": {:.1f}, \"max_us\": "
      "{:.1f}, \"leave_p50_us\": {:.1f}, \"leave_p99_us\": {:.1f}}}\n",
      options.groups, options.rounds, percentile(join, 0.5), percentile(join, 0.99),
      percentile(join, 1), percentile(leave, 0.5), percentile(leave, 0.99));
}

Options parse(int argc, char** argv) {
  Options options;
  std::map<std::string, std::string> values;
  for (int i = 1; i + 1 < argc; i += 2) values[argv[i]] = argv[i + 1];
  const auto number = [&](const char* name, auto& target) {
    if (values.contains(name)) {
      target = static_cast<std::remove_reference_t<decltype(target)>>(std::stoull(values[name]));
    }
  };
  const auto text = [&](const char* name, std::string& target) {
    if (values.contains(name)) target = values[name];
  };
  text("--address", options.address);
  text("--stream", options.stream);
  text("--mode", options.mode);
  text("--compression", options.compression);
  number("--size", options.size);
  number("--producers", options.producers);
  number("--count", options.count);
  number("--groups", options.groups);
  number("--rounds", options.rounds);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.mode == "append") {
    append(options);
  } else if (options.mode == "read") {
    read(options);
  } else if (options.mode == "handover") {
    handover(options);
  } else {
    die("unknown mode " + options.mode);
  }
  return 0;
}
