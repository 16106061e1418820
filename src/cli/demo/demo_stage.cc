#include "cli/demo/demo_stage.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kReadyTimeout{15'000};
constexpr std::chrono::milliseconds kStopTimeout{10'000};
constexpr std::chrono::milliseconds kStagePoll{5};

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  return signals;
}

void remove_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

DemoFolder::~DemoFolder() {
  over_ = true;
  if (watcher_.joinable()) watcher_.join();
  if (!path_.empty()) remove_folder(path_);
}

Status DemoFolder::make() {
  const char* const base = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
  std::string name = fmt::format("{}/baton-demo.XXXXXX", base == nullptr ? "/tmp" : base);
  if (::mkdtemp(name.data()) == nullptr) {
    return Error{Errc::io_error,
                 fmt::format("cannot create the folder '{}': {}", name, std::strerror(errno))};
  }
  path_ = name;
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::thread([this] { watch_signals(); });
  return {};
}

void DemoFolder::watch_signals() {
  const sigset_t signals = stop_signals();
  const timespec slice{.tv_sec = 0, .tv_nsec = 50'000'000};
  while (!over_) {
    const int signal = sigtimedwait(&signals, nullptr, &slice);
    if (signal <= 0) continue;
    if (const pid_t broker = broker_; broker > 0) {
      ::kill(broker, SIGKILL);
      ::waitpid(broker, nullptr, 0);
    }
    remove_folder(path_);
    std::_Exit(128 + signal);
  }
}

Status DemoBroker::start() {
  const std::string ready = folder_.path() + "/ready";
  ::unlink(ready.c_str());
  BATON_TRY_STATUS(process_.start(
      {.arguments = {"server", "--data", folder_.path() + "/data", "--listen",
                     fmt::format("127.0.0.1:{}", port_), "--http", "off", "--ready-file", ready},
       .log_file = log_file()}));
  folder_.set_broker(process_.pid());
  return wait_until_ready();
}

Status DemoBroker::wait_until_ready() {
  const auto deadline = Clock::now() + kReadyTimeout;
  while (Clock::now() < deadline) {
    std::ifstream file(folder_.path() + "/ready");
    if (int port = 0; file >> port) {
      port_ = port;
      return {};
    }
    if (process_.has_ended()) break;
    std::this_thread::sleep_for(kStagePoll);
  }
  std::ifstream log(log_file());
  std::string line;
  std::string last;
  while (std::getline(log, line)) last = line;
  return Error{Errc::unavailable, fmt::format("the broker did not start: {}", last)};
}

void DemoBroker::kill() {
  process_.kill();
  folder_.set_broker(-1);
}

std::optional<int> DemoBroker::stop() {
  const auto code = process_.stop(kStopTimeout);
  folder_.set_broker(-1);
  return code;
}

std::string DemoBroker::address() const { return fmt::format("127.0.0.1:{}", port_); }

client::ConnectionOptions DemoBroker::connection() const {
  client::ConnectionOptions options;
  options.address = address();
  options.deadline = std::chrono::seconds{10};
  options.reconnect_max = std::chrono::milliseconds{200};
  options.give_up_after = std::chrono::seconds{20};
  return options;
}

void Narrator::act(std::string_view title) {
  acts_.push_back({{"act", title}, {"checks", Json::array()}, {"numbers", Json::object()}});
  if (!out_.json()) Output::text(fmt::format("\n{}. {}", acts_.size(), title));
  std::fflush(stdout);
}

void Narrator::say(std::string_view text) {
  if (!out_.json()) Output::text(fmt::format("   {}", text));
  std::fflush(stdout);
}

bool Narrator::check(bool holds, std::string_view claim) {
  if (!acts_.empty()) acts_.back()["checks"].push_back({{"claim", claim}, {"holds", holds}});
  if (holds) {
    ++passed_;
  } else {
    broken_.emplace_back(claim);
  }
  if (!out_.json()) Output::text(fmt::format("   [{}] {}", holds ? "ok" : "FAILED", claim));
  std::fflush(stdout);
  return holds;
}

void Narrator::number(std::string_view name, double value) {
  if (!acts_.empty()) acts_.back()["numbers"][std::string(name)] = value;
}

void Narrator::failed(std::string_view what, const Error& error) {
  check(false, fmt::format("{}: {}", what, reason(error)));
}

ExitCode Narrator::finish(std::chrono::milliseconds took) const {
  const double seconds = std::chrono::duration<double>(took).count();
  if (out_.json()) {
    Output::object(Json{
        {"acts", acts_}, {"passed", passed_}, {"failed", broken_.size()}, {"seconds", seconds}});
  } else {
    Output::text(fmt::format("\n{} of {} checks hold; it took {:.1f} s.", passed_,
                             passed_ + broken_.size(), seconds));
    for (const std::string& claim : broken_) Output::text(fmt::format("   FAILED: {}", claim));
  }
  return broken_.empty() ? ExitCode::ok : ExitCode::failure;
}

}  // namespace baton::cli
