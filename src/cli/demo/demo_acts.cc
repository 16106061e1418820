#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>

#include "cli/demo/demo_stage.h"

namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;
using client::EnqueueResult;
using client::LeasedMessage;
using client::LeaseStream;
using client::NewMessage;
using std::chrono::milliseconds;

constexpr milliseconds kActPatience{10'000};
constexpr milliseconds kActPoll{5};
// Far above the time needed on a busy machine, far below any timeout of a lease.
constexpr std::size_t kNoisy = 5'000;
constexpr std::size_t kQuiet = 10;
constexpr std::size_t kPayloadBytes = 1'024;
constexpr milliseconds kLoad{1'000};
constexpr milliseconds kRun{2'000};

double ms_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

Result<LeaseStream> open_stream(const Stage& stage, std::string_view queue,
                                std::uint32_t in_flight_max = 0) {
  BATON_TRY(auto stream, stage.client.queue(queue).lease({.in_flight_max = in_flight_max}));
  BATON_TRY(const auto registration, stream.wait_until_registered(kActPatience));
  static_cast<void>(registration);
  return stream;
}

/// The next message, which must come.
Result<LeasedMessage> take(LeaseStream& stream) {
  BATON_TRY(std::optional<LeasedMessage> message, stream.next(kActPatience));
  if (message.has_value()) return std::move(message).value();
  return Error{.code = Errc::deadline_exceeded, .text = "no message came"};
}

Status send(const Stage& stage, std::string_view queue, std::vector<NewMessage> messages) {
  BATON_TRY(const auto results, stage.client.queue(queue).enqueue(std::move(messages)));
  for (const EnqueueResult& result : results) {
    if (result.error.has_value()) return result.error.value();
  }
  return {};
}

std::vector<NewMessage> numbered(std::size_t count, const std::string& key) {
  std::vector<NewMessage> messages(count);
  for (std::size_t i = 0; i < count; ++i) {
    messages[i].payload = fmt::format("{} {}", key, i + 1);
    messages[i].fairness_key = key;
  }
  return messages;
}

/// Waits until `queue` exists and holds `count` ready messages.
bool wait_for_ready(const Stage& stage, std::string_view queue, std::uint64_t count) {
  const auto deadline = Clock::now() + kActPatience;
  while (Clock::now() < deadline) {
    const auto info = stage.client.queue(queue).describe();
    if (info && info->stats.ready == count) return true;
    std::this_thread::sleep_for(kActPoll);
  }
  return false;
}

/// Sends to one queue as fast as possible, on a thread of its own, and remembers what was
/// confirmed.
class Load {
 public:
  Load(client::Producer producer, NewMessage message)
      : producer_(std::move(producer)), message_(std::move(message)), thread_([this] { run(); }) {}
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() { stop(); }

  void stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    static_cast<void>(producer_.close(kActPatience));
  }
  [[nodiscard]] std::size_t confirmed() const { return count_; }
  /// Call after stop().
  [[nodiscard]] const std::vector<std::string>& ids() const { return ids_; }

 private:
  void run() {
    constexpr std::size_t kBatch = 64;
    while (!over_) {
      producer_.send_batch(std::vector<NewMessage>(kBatch, message_),
                           [this](std::vector<EnqueueResult> results) {
                             for (EnqueueResult& result : results) note(result);
                           });
    }
  }
  // Callbacks come one at a time.
  void note(EnqueueResult& result) {
    if (!result.ok()) return;
    ids_.push_back(std::move(result.id));
    ++count_;
  }

  std::vector<std::string> ids_;
  std::atomic<std::size_t> count_ = 0;
  std::atomic<bool> over_ = false;
  client::Producer producer_;
  NewMessage message_;
  std::thread thread_;
};

/// Acks everything that comes until at least `wanted` have come and then nothing for a moment; a
/// busy machine gets more time. Returns the ids.
Result<std::set<std::string>> drain(LeaseStream& stream, std::size_t wanted) {
  constexpr milliseconds kMoment{300};
  std::set<std::string> ids;
  milliseconds quiet{0};
  while (quiet < kActPatience) {
    BATON_TRY(std::vector<LeasedMessage> messages, stream.next_batch(kMoment));
    if (messages.empty()) {
      if (ids.size() >= wanted) break;
      quiet += kMoment;
      continue;
    }
    quiet = milliseconds{0};
    std::vector<client::LeaseToken> tokens;
    tokens.reserve(messages.size());
    for (LeasedMessage& message : messages) {
      ids.insert(std::move(message.id));
      tokens.push_back(std::move(message.token));
    }
    stream.ack(std::move(tokens));
  }
  BATON_TRY_STATUS(stream.flush(kActPatience));
  return ids;
}

}  // namespace

Status act_first_messages(Stage& stage) {
  BATON_TRY_STATUS(stage.client.queue("greetings").create());
  const auto began = Clock::now();
  BATON_TRY_STATUS(send(stage, "greetings", numbered(10, "")));
  stage.narrator.say(
      fmt::format("sent 10 messages, each confirmed, in {:.1f} ms", ms_since(began)));
  BATON_TRY(auto stream, open_stream(stage, "greetings"));
  const auto leased = Clock::now();
  std::set<std::string> ids;
  for (int i = 0; i < 10; ++i) {
    BATON_TRY(LeasedMessage message, take(stream));
    ids.insert(message.id);
    stream.ack(message.token);
  }
  BATON_TRY_STATUS(stream.close(kActPatience));
  stage.narrator.say(fmt::format("leased and acked them in {:.1f} ms", ms_since(leased)));
  stage.narrator.check(ids.size() == 10, "all 10 came, each once");
  BATON_TRY(const auto info, stage.client.queue("greetings").describe());
  stage.narrator.check(info.stats.ready + info.stats.leased == 0, "the queue is empty");
  return {};
}

Status act_consumer_dies(Stage& stage) {
  BATON_TRY_STATUS(stage.client.queue("parcels").create());
  BATON_TRY_STATUS(send(stage, "parcels", numbered(10, "")));
  ChildProcess victim;
  const Status started =
      victim.start({.arguments = {"queue", "lease", "parcels", "--max", "10", "--hold", "--json",
                                  "--address", stage.broker.address()},
                    .log_file = stage.folder.path() + "/consumer.log"});
  if (!stage.narrator.check(started.has_value(), "a consumer starts, in a process of its own"))
    return {};
  int held = 0;
  while (held < 10 && victim.read_line(kActPatience)) ++held;
  stage.narrator.say(
      fmt::format("process {} holds {} messages, leased for 30 s", victim.pid(), held));
  BATON_TRY(auto heir, open_stream(stage, "parcels"));

  const auto killed = Clock::now();
  victim.kill();
  std::uint32_t attempt_max = 0;
  for (int i = 0; i < 10; ++i) {
    BATON_TRY(LeasedMessage message, take(heir));
    attempt_max = std::max(attempt_max, message.attempt);
    heir.ack(message.token);
  }
  const double took = ms_since(killed);
  BATON_TRY_STATUS(heir.close(kActPatience));
  stage.narrator.say(
      fmt::format("kill -9; another consumer had all 10 of them {:.1f} ms later", took));
  stage.narrator.number("takeover_ms", took);
  stage.narrator.check(took < kAtOnceMs, "nobody waited for the leases to run out");
  return {};
}

Status act_late_ack(Stage& stage) {
  client::QueueSettings settings;
  settings.visibility_timeout = milliseconds{300};
  settings.retry_delay = milliseconds{10};
  BATON_TRY_STATUS(stage.client.queue("slow").create(settings));
  BATON_TRY_STATUS(send(stage, "slow", numbered(1, "")));
  BATON_TRY(auto slow, open_stream(stage, "slow", 1));
  BATON_TRY(const LeasedMessage first, take(slow));
  stage.narrator.say("a consumer leases a message for 300 ms, and falls asleep");
  BATON_TRY(auto next, open_stream(stage, "slow", 1));
  BATON_TRY(const LeasedMessage second, take(next));
  stage.narrator.say(
      fmt::format("the lease ends; another consumer gets the message, attempt {}", second.attempt));
  BATON_TRY(const auto late, stage.client.queue("slow").ack(std::vector{first.token}));
  const bool refused = !late.at(0) && late.at(0).error().code == Errc::lease_lost;
  stage.narrator.check(refused,
                       "the sleeper's late ack is refused (lease_lost) and changes nothing");
  BATON_TRY(const auto good, stage.client.queue("slow").ack(std::vector{second.token}));
  stage.narrator.check(good.at(0).has_value(), "the new holder's ack counts");
  return {};
}

Status act_dead_letters(Stage& stage) {
  client::QueueSettings settings;
  settings.attempts_max = 3;
  settings.retry_delay = milliseconds{20};
  BATON_TRY_STATUS(stage.client.queue("orders").create(settings));
  BATON_TRY_STATUS(send(stage, "orders", numbered(1, "")));
  BATON_TRY(auto stream, open_stream(stage, "orders"));
  std::string id;
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    BATON_TRY(const LeasedMessage message, take(stream));
    id = message.id;
    stage.narrator.say(fmt::format("attempt {}: nack, \"card declined\"", message.attempt));
    stream.nack({.token = message.token, .reason = "card declined"});
  }
  BATON_TRY_STATUS(stream.flush(kActPatience));
  stage.narrator.check(wait_for_ready(stage, "orders.dlq", 1),
                       "after its 3 attempts the message is in orders.dlq");
  BATON_TRY(const auto dead, stage.client.queue("orders.dlq").peek());
  for (const auto& message : dead) {
    for (const auto& [name, value] : message.headers) {
      stage.narrator.say(fmt::format("  {}: {}", printable(name), printable(value)));
    }
  }
  BATON_TRY(const auto report, stage.client.queue("orders.dlq").redrive());
  stage.narrator.check(report.moved == 1, "redrive moves it back");
  BATON_TRY(const LeasedMessage again, take(stream));
  stage.narrator.check(again.attempt == 1, "it is delivered again, as a first attempt");
  stream.ack(again.token);
  return stream.close(kActPatience);
}

Status act_fairness(Stage& stage) {
  BATON_TRY_STATUS(stage.client.queue("shared").create());
  BATON_TRY_STATUS(send(stage, "shared", numbered(kNoisy, "noisy")));
  BATON_TRY_STATUS(send(stage, "shared", numbered(kQuiet, "quiet")));
  stage.narrator.say(fmt::format("tenant 'noisy' has sent {} messages, then tenant 'quiet' {}",
                                 format_count(kNoisy), kQuiet));
  BATON_TRY(auto stream, open_stream(stage, "shared", 16));
  std::size_t served = 0;
  std::size_t quiet = 0;
  std::size_t quiet_done_at = 0;
  while (served < kNoisy + kQuiet) {
    BATON_TRY(LeasedMessage message, take(stream));
    ++served;
    if (message.fairness_key == "quiet" && ++quiet == kQuiet) quiet_done_at = served;
    stream.ack(message.token);
  }
  BATON_TRY_STATUS(stream.close(kActPatience));
  stage.narrator.say(fmt::format("the last of quiet's messages was number {} of the {} served",
                                 quiet_done_at, format_count(served)));
  stage.narrator.number("quiet_done_at", static_cast<double>(quiet_done_at));
  stage.narrator.check(quiet_done_at <= 10 * kQuiet,
                       "the quiet tenant did not queue up behind the noisy one");
  return {};
}

Status act_broker_dies(Stage& stage) {
  BATON_TRY_STATUS(stage.client.queue("payments").create());
  BATON_TRY(auto producer, stage.client.queue("payments").producer());
  NewMessage message;
  message.payload = std::string(100, 'p');
  Load load(std::move(producer), message);
  std::this_thread::sleep_for(kLoad);
  const std::size_t before = load.confirmed();
  stage.broker.kill();
  stage.narrator.say(fmt::format(
      "kill -9 of the broker after {} confirmed messages, in full flight", format_count(before)));
  const auto down = Clock::now();
  const Status restarted = stage.broker.start();
  if (!stage.narrator.check(restarted.has_value(), "it starts again on the same folder")) return {};
  const double recovery = ms_since(down);
  std::this_thread::sleep_for(kLoad / 2);
  load.stop();
  stage.narrator.say(
      fmt::format("ready again after {:.0f} ms; the producer reconnected by itself and "
                  "has {} confirmed now",
                  recovery, format_count(load.ids().size())));
  stage.narrator.number("restart_ms", recovery);
  stage.narrator.number("confirmed", static_cast<double>(load.ids().size()));

  BATON_TRY(auto stream, open_stream(stage, "payments", 4096));
  BATON_TRY(const std::set<std::string> found, drain(stream, load.ids().size()));
  const auto lost = std::ranges::count_if(
      load.ids(), [&found](const std::string& id) { return !found.contains(id); });
  stage.narrator.say(fmt::format("leased {} messages; confirmed but missing: {}",
                                 format_count(found.size()), lost));
  stage.narrator.check(lost == 0 && !load.ids().empty(), "every confirmed message is there");
  return {};
}

Status act_throughput(Stage& stage) {
  BATON_TRY_STATUS(stage.client.queue("fast").create());
  BATON_TRY(auto stream, open_stream(stage, "fast", 8192));
  BATON_TRY(auto producer, stage.client.queue("fast").producer());
  NewMessage message;
  message.payload = std::string(kPayloadBytes, 'f');
  std::size_t acked = 0;
  const auto began = Clock::now();
  {
    Load load(std::move(producer), message);
    while (Clock::now() - began < kRun) {
      BATON_TRY(std::vector<LeasedMessage> messages, stream.next_batch(milliseconds{100}));
      std::vector<client::LeaseToken> tokens;
      tokens.reserve(messages.size());
      for (LeasedMessage& leased : messages) tokens.push_back(std::move(leased.token));
      acked += tokens.size();
      stream.ack(std::move(tokens));
    }
    load.stop();
  }
  BATON_TRY_STATUS(stream.flush(kActPatience));
  const double rate = static_cast<double>(acked) / (ms_since(began) / 1'000);
  stage.narrator.say(
      fmt::format("1 producer, 1 consumer, 1 KiB, fsync on: {} messages a second sent, "
                  "leased and acked",
                  format_count(static_cast<std::uint64_t>(rate))));
  stage.narrator.number("messages_per_second", rate);
  stage.narrator.check(acked > 0, "messages flow");
  return stream.close(kActPatience);
}

}  // namespace baton::cli
