// What the programs that load a peer share: the command line and the JSON of bench_queue_load and
// bench_stream_load, so that bench/harness.py treats a peer like a broker of ours.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

namespace peer {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string address = "127.0.0.1:0";
  std::string mode = "through";   // through | latency, and where the peer has streams append | read
  std::string delivery = "pull";  // pull | push, where the peer has both
  std::size_t size = 1024;
  std::size_t producers = 1;
  std::size_t consumers = 1;
  std::uint64_t count = 200'000;
  std::uint64_t rate = 1000;
  std::size_t batch = 100;
  std::size_t in_flight = 4096;
  std::size_t window = 16'384;   // Unconfirmed per producer: the default of Baton's own Producer.
  std::size_t transactions = 0;  // 1: each batch is one transaction, where the peer has them.
  std::size_t fetch = 1000;      // Messages per request of a consumer that has to ask for them.
};

[[noreturn]] inline void die(const std::string& what) {
  std::fprintf(stderr, "bench_peer: %s\n", what.c_str());
  // Not exit(): the threads of the peer's library are still running.
  std::_Exit(1);
}

inline Options parse(int argc, char** argv) {
  Options options;
  std::map<std::string, std::string> values;
  for (int i = 1; i + 1 < argc; i += 2) values[argv[i]] = argv[i + 1];
  const auto take = [&](const char* name, auto& target) {
    const auto found = values.extract(name);
    if (found.empty()) return;
    if constexpr (std::is_same_v<decltype(target), std::string&>) {
      target = found.mapped();
    } else {
      target = std::stoull(found.mapped());
    }
  };
  take("--address", options.address);
  take("--mode", options.mode);
  take("--delivery", options.delivery);
  take("--size", options.size);
  take("--producers", options.producers);
  take("--consumers", options.consumers);
  take("--count", options.count);
  take("--rate", options.rate);
  take("--batch", options.batch);
  take("--in-flight", options.in_flight);
  take("--window", options.window);
  take("--transactions", options.transactions);
  take("--fetch", options.fetch);
  if (!values.empty()) die("unknown option " + values.begin()->first);
  return options;
}

inline double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

inline std::int64_t now_ns() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

inline std::uint64_t share(std::uint64_t count, std::size_t parts, std::size_t part) {
  return count / parts + (part < count % parts ? 1 : 0);
}

/// Runs `producers` and `consumers` threads to their end and prints the rate. `produce` gets its
/// number; `consume` counts what it got into `received`, which must come to exactly `count`.
inline void run_through(
    const Options& options, const std::function<void(std::size_t)>& produce,
    const std::function<void(std::size_t, std::atomic<std::uint64_t>&)>& consume) {
  std::atomic<std::uint64_t> received{0};
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; produce && i < options.producers; ++i) {
    threads.emplace_back([&, i] { produce(i); });
  }
  for (std::size_t i = 0; consume && i < options.consumers; ++i) {
    threads.emplace_back([&, i] { consume(i, received); });
  }
  for (std::thread& thread : threads) thread.join();
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  if (consume && received != options.count) {
    die(fmt::format("received {} of {}", received.load(), options.count));
  }
  const auto count = static_cast<double>(options.count);
  fmt::print(
      "{{\"seconds\": {:.6f}, \"messages\": {}, \"rate\": {:.1f}, \"client_cpu_us\": {:.3f}}}\n",
      took, options.count, count / took, (cpu_seconds() - cpu) * 1e6 / count);
}

/// A payload that holds the time of sending.
inline std::string stamped(std::size_t size) {
  std::string payload = std::to_string(now_ns());
  payload.resize(std::max(size, payload.size()), ' ');
  return payload;
}

/// The time since stamped() made `payload`.
inline double micros_since_stamp(std::string_view payload) {
  const std::string digits(payload.substr(0, payload.find(' ')));
  return static_cast<double>(now_ns() - std::strtoll(digits.c_str(), nullptr, 10)) / 1000.0;
}

/// When each message of a latency run is due: at a steady rate, so that a slow answer does not
/// reduce the number of messages that would have met it.
class Pace {
 public:
  explicit Pace(const Options& options)
      : interval_(1'000'000'000 / options.rate),
        due_(Clock::now() + std::chrono::milliseconds{200}) {}

  Clock::time_point due() const { return due_; }
  void advance() { due_ += interval_; }

 private:
  std::chrono::nanoseconds interval_;
  Clock::time_point due_;
};

inline void print_latency(std::vector<double> micros, std::uint64_t count) {
  if (micros.size() != count) die(fmt::format("received {} of {}", micros.size(), count));
  std::ranges::sort(micros);
  const auto at = [&](double part) {
    return micros[static_cast<std::size_t>(part * static_cast<double>(micros.size() - 1))];
  };
  fmt::print(
      "{{\"messages\": {}, \"p50_us\": {:.1f}, \"p90_us\": {:.1f}, \"p99_us\": {:.1f}, "
      "\"max_us\": {:.1f}}}\n",
      micros.size(), at(0.5), at(0.9), at(0.99), micros.back());
}

}  // namespace peer
