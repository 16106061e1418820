#include <array>
#include <chrono>
#include <memory>
#include <string>

#include <baton/client.h>
#include <fmt/format.h>

#include "cli/demo/commands.h"
#include "cli/demo/demo_stage.h"

namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct DemoFlags {
  bool json = false;
};

struct Act {
  std::string_view title;
  Status (*play)(Stage& stage);
};

constexpr std::array kActs = std::to_array<Act>({
    {"Ten messages, sent and leased", act_first_messages},
    {"A consumer dies", act_consumer_dies},
    {"A slow consumer's late ack", act_late_ack},
    {"A message that cannot be handled", act_dead_letters},
    {"A noisy neighbour", act_fairness},
    {"The broker dies, under load", act_broker_dies},
    {"How fast", act_throughput},
    {"A stream, and who may read it", act_stream_seats},
    {"Workers divide partitions", act_partition_leases},
    {"Orders into a database, which goes away", act_pipeline},
});

void play_acts(Stage& stage) {
  for (const Act& act : kActs) {
    stage.narrator.act(act.title);
    const Status status = act.play(stage);
    if (!status) stage.narrator.failed(act.title, status.error());
  }
}

ExitCode run_demo(const DemoFlags& flags) {
  const Output out(flags.json);
  const auto began = Clock::now();
  DemoFolder folder;
  if (const Status made = folder.make(); !made) return out.fail_here("demo", made.error());
  DemoBroker broker(folder);
  if (const Status started = broker.start(); !started)
    return out.fail_here("demo", started.error());
  const auto client = client::Broker::open(broker.connection());
  if (!client) return out.fail("demo", client.error());

  Narrator narrator(out);
  if (!flags.json) {
    Output::text(
        fmt::format("Baton leases every message to one consumer at a time. This is a broker of its "
                    "own, process {}\n"
                    "at {}, with fsync: what it confirms is on the disk.",
                    broker.pid(), broker.address()));
  }
  Stage stage{.folder = folder, .broker = broker, .client = *client, .narrator = narrator};
  play_acts(stage);
  narrator.act("The end");
  narrator.check(broker.stop() == 0, "on SIGTERM the broker finishes its work and exits with 0");
  return narrator.finish(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began));
}

}  // namespace

void add_demo_command(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<DemoFlags>();
  CLI::App* command = add_verb(
      app,
      {.name = "demo",
       .help =
           "Show queues, streams, workers and a pipeline at work, on a broker of its own. Takes "
           "about 20 seconds; exits with 1 when anything is not as it should be.",
       .example = "baton demo"},
      flags, run_demo, action);
  add_json_flag(*command, flags->json);
}

}  // namespace baton::cli
