#include "loglets/nats_bench.h"

#include <unistd.h>

#include <fmt/format.h>

#include "stores/programs.h"

namespace baton::loglets {

Instant steady_now() {
  return {std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())
              .count()};
}

std::unique_ptr<stores::Server> start_nats(int members) {
  const stores::Program program = stores::nats_program(kNatsMin);
  if (!program.missing.empty()) return nullptr;
  auto server = std::make_unique<stores::Server>(stores::ServerOptions{
      .kind = stores::Kind::nats, .members = members, .program = program.path});
  if (!server->start()) return nullptr;
  return server;
}

std::vector<std::string> addresses_of(stores::Server& server) {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < server.size(); ++i) addresses.push_back(server.member(i).address());
  return addresses;
}

std::shared_ptr<coord::NatsLink> connect(stores::Server& server) {
  auto link = coord::NatsLink::connect(addresses_of(server), coord::Deadline(seconds{20}));
  EXPECT_TRUE(link.has_value()) << to_string(link.error());
  return link.has_value() ? *link : nullptr;
}

loglet::LogName new_log_name() {
  static std::uint32_t number = 0;
  return {.cluster = fmt::format("test{}", ::getpid()), .cluster_id = "x1", .shard = ++number};
}

std::unique_ptr<NatsBench> NatsBench::make(stores::Server& server) {
  std::unique_ptr<NatsBench> bench(new NatsBench(server, new_log_name()));
  const auto link = connect(server);
  if (link == nullptr) return nullptr;
  const Status made = loglet::create_log_stream(
      *link, bench->name_, static_cast<std::uint32_t>(server.size()), coord::Deadline(seconds{30}));
  EXPECT_TRUE(made.has_value()) << to_string(made.error());
  return made.has_value() ? std::move(bench) : nullptr;
}

std::unique_ptr<loglet::Loglet> NatsBench::client() {
  auto opened = loglet::open_nats_loglet(
      {.addresses = addresses_of(server_), .stream = loglet::log_stream(name_)}, seconds{20});
  EXPECT_TRUE(opened.has_value()) << to_string(opened.error());
  if (!opened.has_value()) return nullptr;
  (*opened)->set_wake([bell = bell_] {
    const std::scoped_lock lock(bell->mutex);
    bell->rings = true;
    bell->rung.notify_all();
  });
  return *std::move(opened);
}

void NatsBench::wait() {
  std::unique_lock lock(bell_->mutex);
  bell_->rung.wait_for(lock, milliseconds{5}, [&] { return bell_->rings; });
  bell_->rings = false;
}

}  // namespace baton::loglets
