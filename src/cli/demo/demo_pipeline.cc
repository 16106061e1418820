#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <baton/broker.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/demo/demo_stage.h"
#include "cli/worker/worker_flags.h"
#include "pipeline/app/example.h"
#include "pipeline/app/registry.h"
#include "pipeline/app/status_server.h"
#include "pipeline/orders/order_generator.h"

/// The demo's act on pipelines: orders from a stream into SQLite, with poison among them, while the
/// database is unavailable and then returns.
namespace baton::cli {
namespace {

namespace fs = std::filesystem;
using orders::OrderFate;
using std::chrono::milliseconds;

constexpr std::uint64_t kOrders = 20'000;
constexpr orders::OrderMix kMix{.invalid = 20, .broken = 10, .duplicate = 20};
constexpr milliseconds kPipelinePatience{30'000};
constexpr const char* kName = "shop";

/// `baton pipeline run` on the shipped example.
class DemoPipeline {
 public:
  explicit DemoPipeline(Stage& stage) : stage_(stage), folder_(stage.folder.path() + "/shop") {}

  Status start() {
    fs::create_directory(folder_);
    std::string config = pipeline::example_config(kName, stage_.broker.address());
    config +=
        "http: 127.0.0.1:0\nretry: {attempts: 1}\nprobe: {most: 500ms}\nbatch: {records: 100}\n";
    std::ofstream(folder_ + "/config.yaml") << config;
    BATON_TRY_STATUS(process_.start(
        {.arguments = {"pipeline", "run", folder_ + "/config.yaml", "--json"}, .log_file = log()}));
    return wait([this] { return status().value("state", "") == "running"; },
                "the pipeline does not start");
  }

  /// Moves the file, and what SQLite keeps beside it.
  void move_database(bool away) {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      const std::string here = folder_ + "/shop.db" + suffix;
      const std::string there = here + ".away";
      std::error_code not_there;
      fs::rename(away ? here : there, away ? there : here, not_there);
    }
  }

  Json status() {
    const auto answer = pipeline::ask_status(address());
    return answer.has_value() ? Json::parse(*answer, nullptr, false) : Json::object();
  }
  std::uint64_t ended() {
    const Json counters = status().value("counters", Json::object());
    return counters.value("applied", std::uint64_t{0}) +
           counters.value("duplicates", std::uint64_t{0}) +
           counters.value("dead_letters", std::uint64_t{0});
  }
  std::string breaker() { return status().value("breaker", Json::object()).value("state", ""); }

  template <class Condition>
  Status wait(Condition holds, std::string_view complaint) {
    const auto until = std::chrono::steady_clock::now() + kPipelinePatience;
    while (!holds()) {
      if (process_.has_ended() || std::chrono::steady_clock::now() > until) {
        return Error{Errc::deadline_exceeded, std::string(complaint)};
      }
      std::this_thread::sleep_for(milliseconds(20));
    }
    return {};
  }

  /// Returns its exit code; `end` receives its last output.
  std::optional<int> stop(Json& end) {
    const auto code = process_.stop(kPipelinePatience);
    const auto line = process_.read_line(milliseconds(100));
    end = Json::parse(line.value_or("{}"), nullptr, false);
    return code;
  }

 private:
  [[nodiscard]] std::string log() const { return folder_ + "/log"; }
  [[nodiscard]] std::string address() const {
    constexpr std::string_view kBefore = "metrics at http://";
    std::ifstream file(log());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t at = text.find(kBefore);
    if (at == std::string::npos) return "";
    const std::size_t begin = at + kBefore.size();
    return text.substr(begin, text.find_first_of("\"\n", begin) - begin);
  }

  Stage& stage_;
  std::string folder_;
  ChildProcess process_;
};

struct Sent {
  std::map<OrderFate, std::uint64_t> counts;
  [[nodiscard]] std::uint64_t of(OrderFate fate) const {
    const auto found = counts.find(fate);
    return found == counts.end() ? 0 : found->second;
  }
  [[nodiscard]] std::uint64_t poison() const {
    return of(OrderFate::invalid) + of(OrderFate::broken);
  }
};

Result<Sent> send_orders(Stage& stage) {
  auto broker = client::Broker::open(stage.broker.connection());
  if (!broker) return Error{Errc::unavailable, broker.error().text};
  const auto created = broker->stream(kName).create(4);
  if (!created) return Error{Errc::unavailable, created.error().text};
  BATON_TRY(const auto endpoint, pipeline::parse_source_url(fmt::format(
                                     "baton-stream://{}/{}", stage.broker.address(), kName)));
  BATON_TRY(const auto output, pipeline::open_output(endpoint));
  orders::OrderGenerator generator(1, kMix);
  Sent sent;
  for (std::uint64_t i = 0; i < kOrders; ++i) {
    orders::GeneratedOrder order = generator.next();
    ++sent.counts[order.fate];
    pipeline::Record record;
    record.key = std::move(order.order_uid);
    record.value = std::move(order.bytes);
    BATON_TRY_STATUS(output->send(std::move(record)));
  }
  BATON_TRY_STATUS(output->flush(kPipelinePatience));
  return sent;
}

void check_end(Stage& stage, const Sent& sent, const Json& end) {
  const auto count = [&](const char* name) { return end.value(name, std::uint64_t{0}); };
  stage.narrator.say(fmt::format("in the tables {}, duplicates {}, dead letters {}",
                                 count("applied"), count("duplicates"), count("dead_letters")));
  stage.narrator.check(count("applied") == sent.of(OrderFate::valid) &&
                           count("duplicates") == sent.of(OrderFate::duplicate) &&
                           count("dead_letters") == sent.poison(),
                       "the counts are the generator's: nothing skipped, nothing twice, no dead "
                       "letter of the outage");
  const auto letters = stage.client.queue(std::string(kName) + ".dlq").describe();
  stage.narrator.check(
      letters.has_value() && letters->stats.ready == sent.poison(),
      "the dead letters are in a queue, with their reasons, to be sent back later");
}

Status play_pipeline(Stage& stage) {
  BATON_TRY(const Sent sent, send_orders(stage));
  stage.narrator.say(fmt::format(
      "a stream of {} orders: {} against the schema, {} that are not JSON, {} for the second time",
      kOrders, sent.of(OrderFate::invalid), sent.of(OrderFate::broken),
      sent.of(OrderFate::duplicate)));
  DemoPipeline pipeline(stage);
  const auto began = std::chrono::steady_clock::now();
  BATON_TRY_STATUS(pipeline.start());
  BATON_TRY_STATUS(
      pipeline.wait([&] { return pipeline.ended() > kOrders / 10; }, "nothing is written"));
  pipeline.move_database(true);
  BATON_TRY_STATUS(
      pipeline.wait([&] { return pipeline.breaker() == "open"; }, "nobody noticed the outage"));
  std::this_thread::sleep_for(milliseconds(1000));
  stage.narrator.say(
      fmt::format("the database is taken away: the pipeline waits, {} records in memory",
                  pipeline.status().value("window", Json::object()).value("records", 0)));
  pipeline.move_database(false);
  BATON_TRY_STATUS(pipeline.wait([&] { return pipeline.ended() >= kOrders; }, "it does not go on"));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  stage.narrator.say(
      fmt::format("it comes back, and everything is seen to its end {:.1f} s after "
                  "the start, the outage included",
                  took.count()));
  stage.narrator.number("pipeline_s", took.count());
  Json end;
  stage.narrator.check(pipeline.stop(end) == 0, "on SIGTERM it drains, commits and exits with 0");
  check_end(stage, sent, end);
  return {};
}

}  // namespace

Status act_pipeline(Stage& stage) {
  const Status played = play_pipeline(stage);
  if (!played) return played.error();
  return {};
}

}  // namespace baton::cli
