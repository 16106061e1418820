// One measurement of a running broker's queue, printed as one JSON object. bench/bench_queue.py
// starts the brokers, interleaves the rounds and reports; this program only makes the load and
// counts.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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
#include <baton/lease_stream.h>
#include <baton/producer.h>
#include <fmt/format.h>

#include "connection.h"

namespace {

using baton::client::Broker;
using baton::client::EnqueueResult;
using baton::client::LeasedMessage;
using baton::client::LeaseToken;
using baton::client::NewMessage;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct Options {
  std::string address = "127.0.0.1:7470";
  std::string queue = "bench";
  std::string mode = "through";  // through | fill | drain | latency
  std::size_t size = 1024;
  std::size_t producers = 1;
  std::size_t consumers = 1;
  std::uint64_t count = 200'000;
  std::uint64_t keys = 1;
  std::uint64_t rate = 1000;
  std::size_t batch = 100;
  std::uint32_t in_flight = 4096;
};

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "bench_queue_load: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T value_of(baton::Result<T> result) {
  if (!result.has_value()) die(result.error().text);
  return *std::move(result);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::uint64_t share(std::uint64_t count, std::size_t parts, std::size_t part) {
  return count / parts + (part < count % parts ? 1 : 0);
}

baton::client::Queue queue_of(const Options& options) {
  return value_of(Broker::open(baton::bench::connection_to(options.address))).queue(options.queue);
}

void produce(const Options& options, std::size_t number, std::atomic<std::uint64_t>& failed) {
  auto producer = value_of(queue_of(options).producer());
  std::uint64_t left = share(options.count, options.producers, number);
  std::uint64_t key = number;
  while (left > 0) {
    std::vector<NewMessage> batch(std::min<std::uint64_t>(left, options.batch));
    for (NewMessage& message : batch) {
      message.payload.assign(options.size, 'x');
      if (options.keys > 1) message.fairness_key = fmt::format("tenant-{}", key++ % options.keys);
    }
    left -= batch.size();
    producer.send_batch(std::move(batch), [&failed](const std::vector<EnqueueResult>& results) {
      failed += static_cast<std::uint64_t>(
          std::ranges::count_if(results, [](const EnqueueResult& result) { return !result.ok(); }));
    });
  }
  if (const auto closed = producer.close(milliseconds{120'000}); !closed.has_value()) {
    die(closed.error().text);
  }
}

void consume(const Options& options, std::atomic<std::uint64_t>& received) {
  auto stream = value_of(queue_of(options).lease(
      {.in_flight_max = options.in_flight, .in_flight_bytes_max = 256UL << 20U}));
  while (received < options.count) {
    std::vector<LeasedMessage> batch = value_of(stream.next_batch(milliseconds{50}));
    if (batch.empty()) continue;
    std::vector<LeaseToken> tokens;
    tokens.reserve(batch.size());
    for (LeasedMessage& message : batch) tokens.push_back(std::move(message.token));
    received += batch.size();
    stream.ack(std::move(tokens));
  }
  // An ack counts when the broker has confirmed it.
  if (const auto closed = stream.close(milliseconds{60'000}); !closed.has_value()) {
    die(closed.error().text);
  }
}

void run_load(const Options& options, bool producing, bool consuming) {
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> received{0};
  const double cpu_before = cpu_seconds();
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; producing && i < options.producers; ++i) {
    threads.emplace_back([&, i] { produce(options, i, failed); });
  }
  for (std::size_t i = 0; consuming && i < options.consumers; ++i) {
    threads.emplace_back([&] { consume(options, received); });
  }
  for (std::thread& thread : threads) thread.join();
  const double took = seconds_since(start);
  if (failed != 0) die(fmt::format("{} messages were refused", failed.load()));
  if (consuming && received != options.count) {
    die(fmt::format("received {} of {}", received.load(), options.count));
  }
  fmt::print(
      "{{\"seconds\": {:.6f}, \"messages\": {}, \"rate\": {:.1f}, \"client_cpu_us\": {:.3f}}}\n",
      took, options.count, static_cast<double>(options.count) / took,
      (cpu_seconds() - cpu_before) * 1e6 / static_cast<double>(options.count));
}

/// Sends at a steady rate and measures each message from its send() to its arrival at the consumer.
void run_latency(const Options& options) {
  auto producer = value_of(queue_of(options).producer());
  std::vector<double> micros;
  micros.reserve(options.count);
  std::thread consumer([&] {
    auto stream = value_of(queue_of(options).lease());
    while (micros.size() < options.count) {
      for (LeasedMessage& message : value_of(stream.next_batch(milliseconds{100}))) {
        const auto sent = std::strtoll(message.payload.c_str(), nullptr, 10);
        const auto now = Clock::now().time_since_epoch();
        micros.push_back(static_cast<double>(std::chrono::nanoseconds(now).count() - sent) /
                         1000.0);
        stream.ack(std::move(message.token));
      }
    }
    static_cast<void>(stream.close(milliseconds{10'000}));
  });
  const auto interval = std::chrono::nanoseconds(1'000'000'000 / options.rate);
  auto next = Clock::now() + milliseconds{200};
  for (std::uint64_t i = 0; i < options.count; ++i, next += interval) {
    std::this_thread::sleep_until(next);
    NewMessage message;
    message.payload =
        std::to_string(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
    message.payload.resize(options.size, ' ');
    producer.send(std::move(message), {});
  }
  consumer.join();
  static_cast<void>(producer.close(milliseconds{10'000}));
  std::ranges::sort(micros);
  const auto at = [&](double part) {
    return micros[static_cast<std::size_t>(part * static_cast<double>(micros.size() - 1))];
  };
  fmt::print(
      "{{\"messages\": {}, \"p50_us\": {:.1f}, \"p90_us\": {:.1f}, \"p99_us\": {:.1f}, "
      "\"max_us\": {:.1f}}}\n",
      micros.size(), at(0.5), at(0.9), at(0.99), micros.back());
}

Options parse(int argc, char** argv) {
  Options options;
  const std::map<std::string, std::string*> texts{
      {"--address", &options.address}, {"--queue", &options.queue}, {"--mode", &options.mode}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (const auto text = texts.find(name); text != texts.end()) {
      *text->second = value;
      continue;
    }
    const std::uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "--size")
      options.size = number;
    else if (name == "--producers")
      options.producers = number;
    else if (name == "--consumers")
      options.consumers = number;
    else if (name == "--count")
      options.count = number;
    else if (name == "--keys")
      options.keys = number;
    else if (name == "--rate")
      options.rate = number;
    else if (name == "--batch")
      options.batch = number;
    else if (name == "--in-flight")
      options.in_flight = static_cast<std::uint32_t>(number);
    else
      die(fmt::format("unknown option {}", name));
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.mode == "latency") {
    run_latency(options);
  } else {
    run_load(options, options.mode != "drain", options.mode != "fill");
  }
  return 0;
}
