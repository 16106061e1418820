#include "pipeline/pipeline_process.h"

#include <csignal>
#include <utility>

#include <gtest/gtest.h>
#include <httplib.h>

namespace baton::pipeline {
namespace {

std::string variable_of(const std::string& path) {
  std::string name = "BATON_PIPELINE__";
  for (const char c : path) {
    if (c == '.') {
      name += "__";
    } else {
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
  }
  return name;
}

}  // namespace

PipelineFolder::PipelineFolder(const e2e::BrokerProcess& broker, Settings settings)
    : settings_{{"source.url", "baton-stream://" + broker.address() + "/orders"},
                {"dead_letters.url", "baton-queue://" + broker.address() + "/orders.dlq"},
                {"http", "127.0.0.1:0"},
                {"retry.attempts", "2"},
                {"retry.first", "20ms"},
                {"retry.most", "100ms"},
                {"probe.first", "50ms"},
                {"probe.most", "200ms"}} {
  for (auto& [path, value] : settings) settings_[path] = std::move(value);
  const auto example = e2e::run_command({e2e::binary(), "pipeline", "init", "orders"});
  EXPECT_EQ(example.exit_code, 0) << example.err;
  e2e::write_file(config(), example.out);
}

void PipelineFolder::remove_key() const {
  const std::string line = "\nkey: order_uid";
  std::string text = e2e::read_file(config());
  const std::size_t key = text.find(line);
  ASSERT_NE(key, std::string::npos);
  e2e::write_file(config(), text.erase(key, line.size()));
}

std::vector<std::string> PipelineFolder::environment() const {
  std::vector<std::string> result;
  for (const auto& [path, value] : settings_) result.push_back(variable_of(path) + "=" + value);
  return result;
}

e2e::CommandResult PipelineFolder::check(std::vector<std::string> more) const {
  std::vector<std::string> command{e2e::binary(), "pipeline", "check", config()};
  command.insert(command.end(), more.begin(), more.end());
  return e2e::run_command(std::move(command), {.environment = environment()});
}

std::string PipelineProcess::log_file() const {
  return folder_.folder() / ("log" + std::to_string(number_));
}

void PipelineProcess::launch() {
  log_begin_ = log().size();
  child_ = std::make_unique<e2e::ChildProcess>(
      e2e::ChildProcess::Options{.command = {e2e::binary(), "pipeline", "run", folder_.config()},
                                 .out_file = log_file() + ".out",
                                 .err_file = log_file(),
                                 .environment = folder_.environment()});
}

bool PipelineProcess::start() {
  launch();
  const auto is_reading = [&] {
    const std::string text = log();
    return text.find("reading\n", std::min(log_begin_, text.size())) != std::string::npos;
  };
  const bool ready = e2e::eventually([&] { return child_->exit_code() || is_reading(); });
  EXPECT_TRUE(ready && !child_->exit_code()) << log();
  return ready && !child_->exit_code();
}

std::optional<int> PipelineProcess::terminate(e2e::milliseconds within) {
  child_->signal(SIGTERM);
  return child_->wait(within);
}

std::string PipelineProcess::http() const {
  constexpr std::string_view kBefore = "metrics at http://";
  const std::string text = log();
  const std::size_t at = text.find(kBefore, std::min(log_begin_, text.size()));
  if (at == std::string::npos) return "";
  const std::size_t begin = at + kBefore.size();
  return text.substr(begin, text.find_first_of("\"\n", begin) - begin);
}

std::pair<int, std::string> PipelineProcess::get(const std::string& path) const {
  httplib::Client client("http://" + http());
  const auto answer = client.Get(path);
  return answer ? std::pair(answer->status, answer->body) : std::pair(0, std::string());
}

nlohmann::json PipelineProcess::status() const {
  const auto answer =
      e2e::run_command({e2e::binary(), "pipeline", "status", "orders", "--json", "--http", http()});
  if (answer.exit_code != 0) return {};
  return nlohmann::json::parse(answer.out, nullptr, false);
}

std::uint64_t PipelineProcess::counter(const std::string& name) const {
  const nlohmann::json json = status();
  // While it waits to begin there are no counters.
  if (!json.is_object() || !json.contains("counters")) return 0;
  return json["counters"].value(name, std::uint64_t{0});
}

std::uint64_t PipelineProcess::ended() const {
  const nlohmann::json json = status();
  if (!json.is_object() || !json.contains("counters")) return 0;
  const nlohmann::json& counters = json["counters"];
  return counters["applied"].get<std::uint64_t>() + counters["duplicates"].get<std::uint64_t>() +
         counters["dead_letters"].get<std::uint64_t>();
}

std::string PipelineProcess::breaker() const {
  const nlohmann::json json = status();
  if (!json.is_object() || !json.contains("breaker")) return "";
  return json["breaker"].value("state", "");
}

std::uint64_t PipelineProcess::resident() const {
  const std::string text = e2e::read_file("/proc/" + std::to_string(child_->pid()) + "/status");
  const std::size_t at = text.find("VmRSS:");
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + 6));
}

}  // namespace baton::pipeline
