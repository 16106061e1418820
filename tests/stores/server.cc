#include "stores/server.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "e2e/free_port.h"
#include "stores/programs.h"

namespace baton::stores {
namespace {

using e2e::milliseconds;
using e2e::seconds;

constexpr seconds kStartWithin{30};

std::string at(int port) { return fmt::format("127.0.0.1:{}", port); }

/// A server that is a program with flags, and prints a certain line when it serves.
class ProcessMember final : public Member {
 public:
  struct Options {
    std::string name{};
    std::vector<std::string> command{};
    std::string address{};
    std::string log_file{};
    std::string ready_line{};
    int health_port = 0;  // Answers /healthz with 200 once it is current; 0: no such port.
  };
  explicit ProcessMember(Options options) : options_(std::move(options)) {}

  bool start() override {
    const std::size_t logged = log().size();
    child_ = std::make_unique<e2e::ChildProcess>(
        e2e::ChildProcess::Options{.command = options_.command, .err_file = options_.log_file});
    e2e::eventually([&] { return !is_running() || is_ready(logged); }, kStartWithin);
    if (is_running() && is_ready(logged)) return true;
    ADD_FAILURE() << options_.name << " did not start: " << log().substr(logged);
    return false;
  }
  void signal(int number) override {
    if (child_) child_->signal(number);
  }
  void wait() override {
    if (child_ && !child_->wait(kStartWithin)) {
      ADD_FAILURE() << options_.name << " does not end";
      child_->kill();
    }
  }
  bool is_running() override { return child_ && !child_->exit_code(); }
  bool is_current() override {
    return options_.health_port == 0 || e2e::http_get(options_.health_port, "/healthz").has_value();
  }
  void pause() override {
    if (child_) child_->pause();
  }
  std::string address() const override { return options_.address; }
  std::string log() const override { return e2e::read_file(options_.log_file); }
  std::string name() const override { return options_.name; }

 private:
  [[nodiscard]] bool is_ready(std::size_t logged) const {
    return log().find(options_.ready_line, logged) != std::string::npos;
  }

  Options options_;
  std::unique_ptr<e2e::ChildProcess> child_;
};

Program newest_nats(const ServerOptions& options) {
  return nats_program(options.members > 1 ? coord::kNatsReplicatedMin : coord::NatsVersion{});
}

class BrokerMember final : public Member {
 public:
  explicit BrokerMember(const std::vector<std::string>& flags) : broker_(flags) {}
  bool start() override {
    if (broker_.start(kStartWithin)) return true;
    ADD_FAILURE() << "the broker did not start: " << broker_.log();
    return false;
  }
  void signal(int number) override {
    if (broker_.is_running()) broker_.signal(number);
  }
  void wait() override { EXPECT_TRUE(broker_.wait(kStartWithin).has_value()); }
  bool is_running() override { return broker_.is_running(); }
  void pause() override { broker_.pause(); }
  std::string address() const override { return broker_.address(); }
  std::string log() const override { return broker_.log(); }
  std::string name() const override { return "broker"; }

 private:
  e2e::BrokerProcess broker_;
};

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::broker: return "broker";
    case Kind::nats: return "nats";
    case Kind::etcd: return "etcd";
  }
  return "";
}

void Member::stop() {
  signal(SIGTERM);
  wait();
}

void Member::kill() {
  signal(SIGKILL);
  wait();
}

void Member::resume() { signal(SIGCONT); }

std::string Server::missing(const ServerOptions& options) {
  switch (options.kind) {
    case Kind::broker: return {};
    case Kind::nats: return options.program.empty() ? newest_nats(options).missing : "";
    case Kind::etcd: return etcd_program().missing;
  }
  return {};
}

Server::Server(ServerOptions options) : options_(std::move(options)) {
  switch (options_.kind) {
    case Kind::broker: members_.push_back(std::make_unique<BrokerMember>(options_.flags)); break;
    case Kind::nats: make_nats(); break;
    case Kind::etcd: make_etcd(); break;
  }
}

void Server::make_nats() {
  const std::string program =
      options_.program.empty() ? newest_nats(options_).path : options_.program;
  std::vector<int> cluster_ports;
  std::vector<std::string> routes;
  for (int i = 0; i < options_.members; ++i) {
    cluster_ports.push_back(e2e::free_port());
    routes.push_back("nats://" + at(cluster_ports.back()));
  }
  for (int i = 0; i < options_.members; ++i) {
    const std::string name = fmt::format("n{}", i + 1);
    const int port = e2e::free_port();
    const int health_port = e2e::free_port();
    std::vector<std::string> command{program,
                                     "--name",
                                     name,
                                     "-a",
                                     "127.0.0.1",
                                     "-p",
                                     std::to_string(port),
                                     "-m",
                                     std::to_string(health_port)};
    if (options_.jetstream) command.insert(command.end(), {"-js", "-sd", folder_ / name});
    command.insert(command.end(), options_.flags.begin(), options_.flags.end());
    if (options_.members > 1) {
      const std::string own = routes[static_cast<std::size_t>(i)];
      command.insert(command.end(), {"--cluster_name", "baton-test", "--cluster", own, "--routes",
                                     fmt::format("{}", fmt::join(routes, ","))});
    }
    members_.push_back(std::make_unique<ProcessMember>(
        ProcessMember::Options{.name = name,
                               .command = std::move(command),
                               .address = at(port),
                               .log_file = folder_ / (name + ".log"),
                               .ready_line = "Server is ready",
                               .health_port = health_port}));
  }
}

void Server::make_etcd() {
  std::vector<std::string> peers;
  std::vector<std::string> cluster;
  for (int i = 0; i < options_.members; ++i) {
    peers.push_back("http://" + at(e2e::free_port()));
    cluster.push_back(fmt::format("n{}={}", i + 1, peers.back()));
  }
  for (int i = 0; i < options_.members; ++i) {
    const std::string name = fmt::format("n{}", i + 1);
    const std::string peer = peers[static_cast<std::size_t>(i)];
    const std::string address = at(e2e::free_port());
    const std::string client = fmt::format("{}://{}", options_.tls ? "https" : "http", address);
    std::vector<std::string> command{etcd_program().path,
                                     "--name",
                                     name,
                                     "--data-dir",
                                     folder_ / name,
                                     "--listen-client-urls",
                                     client,
                                     "--advertise-client-urls",
                                     client,
                                     "--listen-peer-urls",
                                     peer,
                                     "--initial-advertise-peer-urls",
                                     peer,
                                     "--initial-cluster",
                                     fmt::format("{}", fmt::join(cluster, ",")),
                                     "--initial-cluster-state",
                                     "new",
                                     "--initial-cluster-token",
                                     "baton-test",
                                     "--logger",
                                     "zap",
                                     "--log-outputs",
                                     "stderr"};
    command.insert(command.end(), options_.flags.begin(), options_.flags.end());
    members_.push_back(std::make_unique<ProcessMember>(
        ProcessMember::Options{.name = name,
                               .command = std::move(command),
                               .address = address,
                               .log_file = folder_ / (name + ".log"),
                               .ready_line = options_.members > 1 ? "starting an etcd server"
                                                                  : "serving client traffic"}));
  }
}

bool Server::start() {
  bool all = true;
  for (const auto& member : members_) {
    if (!member->is_running()) all = member->start() && all;
  }
  return all && (size() == 1 || wait_for_leader());
}

bool Server::wait_for_leader() {
  const std::string_view line = kind() == Kind::nats ? "metadata leader" : "serving client traffic";
  const bool found = e2e::eventually(
      [&] {
        return std::ranges::all_of(members_, [&](const auto& member) {
          return member->log().find(line) != std::string::npos;
        });
      },
      kStartWithin);
  EXPECT_TRUE(found) << "no leader: " << member(0).log();
  return found;
}

void Server::stop() {
  for (const auto& member : members_) member->stop();
}
void Server::kill() {
  for (const auto& member : members_) member->kill();
}
void Server::pause() {
  for (const auto& member : members_) member->pause();
}
void Server::lose_disks() {
  for (const auto& member : members_) std::filesystem::remove_all(folder_ / member->name());
}

void Server::resume() {
  for (const auto& member : members_) member->resume();
}

std::string Server::url(std::string_view bucket, std::string_view more) const {
  std::vector<std::string> addresses;
  for (const auto& member : members_) addresses.push_back(member->address());
  const std::string_view scheme = kind() == Kind::broker ? "baton" : name_of(kind());
  return fmt::format("{}{}://{}/{}{}", scheme, options_.tls ? "s" : "", fmt::join(addresses, ","),
                     bucket, more);
}

}  // namespace baton::stores
