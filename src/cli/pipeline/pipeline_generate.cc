#include <unistd.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/secure/settings.h"
#include "cli/base/interrupt.h"
#include "cli/base/parse.h"
#include "cli/base/progress.h"
#include "cli/base/security_flags.h"
#include "cli/base/terminal.h"
#include "cli/pipeline/commands.h"
#include "pipeline/app/registry.h"
#include "pipeline/ends/endpoint.h"
#include "pipeline/orders/order_generator.h"

namespace baton::cli {
namespace {

using orders::GeneratedOrder;
using orders::OrderFate;
using orders::OrderGenerator;

constexpr std::chrono::seconds kFlushTimeout{60};
constexpr std::uint64_t kCountMax = 1'000'000'000'000;

struct GenerateFlags {
  std::string what;
  std::uint64_t count = 1000;
  std::uint64_t seed = 1;
  double invalid = 0;
  double broken = 0;
  double duplicate = 0;
  std::string to = "-";
  std::uint32_t partitions = 1;
  secure::Settings security;
  bool json = false;
};

double per_mille(double percent) { return std::round(percent * 10); }

/// "2%" or "0.5%".
Result<double> parse_percent(std::string_view text) {
  const std::string_view digits = text.substr(0, text.size() - (text.ends_with('%') ? 1 : 0));
  const auto percent = parse_rate(digits);
  if (!percent.has_value() || *percent > 100) {
    return Error{Errc::invalid_argument,
                 fmt::format("'{}' is not a share from 0% to 100%", text.substr(0, 64))};
  }
  if (std::abs(per_mille(*percent) - *percent * 10) > 1e-6) {
    return Error{Errc::invalid_argument, "is not a multiple of 0.1%"};
  }
  return *percent;
}

orders::OrderMix mix_of(const GenerateFlags& flags) {
  const auto share = [](double percent) { return static_cast<std::uint32_t>(per_mille(percent)); };
  return {.invalid = share(flags.invalid),
          .broken = share(flags.broken),
          .duplicate = share(flags.duplicate)};
}

struct Tally {
  std::map<OrderFate, std::uint64_t> counts;

  /// Not printed when the records themselves go to standard output.
  void print(bool json, bool to_stdout) const {
    const auto of = [this](OrderFate fate) {
      const auto found = counts.find(fate);
      return found == counts.end() ? 0 : found->second;
    };
    const Json all{{"valid", of(OrderFate::valid)},
                   {"invalid", of(OrderFate::invalid)},
                   {"broken", of(OrderFate::broken)},
                   {"duplicate", of(OrderFate::duplicate)}};
    if (json) return fmt::print(to_stdout ? stdout : stderr, "{}\n", dump(all));
    fmt::print(stderr, "{} valid, {} invalid, {} broken, {} duplicates\n", of(OrderFate::valid),
               of(OrderFate::invalid), of(OrderFate::broken), of(OrderFate::duplicate));
  }
};

ExitCode generate_to_stdout(const GenerateFlags& flags, OrderGenerator& generator) {
  Tally tally;
  for (std::uint64_t i = 0; i < flags.count; ++i) {
    const GeneratedOrder order = generator.next();
    ++tally.counts[order.fate];
    fmt::print("{}\n", order.bytes);
  }
  tally.print(flags.json, false);
  return ExitCode::ok;
}

Result<Tally> generate_to(const GenerateFlags& flags, OrderGenerator& generator) {
  BATON_TRY(pipeline::Endpoint target, pipeline::parse_source_url(flags.to));
  const auto environment = secure::process_environment();
  secure::Settings settings = flags.security;
  // There is only one server, and the variables are meant for it.
  if (!target.is_broker()) {
    secure::take_tls_variables(settings, target.tls ? secure::Scheme::tls : secure::Scheme::plain,
                               environment);
    secure::take_login_variables(settings, environment);
  }
  BATON_TRY(target.security, pipeline::load_security(target, settings, environment));
  BATON_TRY(const auto output, pipeline::open_output(target, {.partitions = flags.partitions}));
  Tally tally;
  Progress progress(!flags.json && is_terminal(STDERR_FILENO), flags.count);
  for (std::uint64_t i = 0; i < flags.count && !is_interrupted(); ++i) {
    GeneratedOrder order = generator.next();
    ++tally.counts[order.fate];
    pipeline::Record record;
    record.key = std::move(order.order_uid);
    record.value = std::move(order.bytes);
    BATON_TRY_STATUS(output->send(std::move(record)));
    progress.show("sent");
  }
  const Status flushed = output->flush(kFlushTimeout);
  progress.clear();
  BATON_TRY_STATUS(flushed);
  return tally;
}

ExitCode run_generate(const GenerateFlags& flags) {
  const Output out(flags.json);
  if (flags.what != "orders") {
    return out.fail("pipeline generate", "there is only 'orders' to generate", ExitCode::usage);
  }
  const orders::OrderMix mix = mix_of(flags);
  if (mix.invalid + mix.broken + mix.duplicate > 1000) {
    return out.fail("pipeline generate", "invalid, broken and duplicate ones are more than 100%",
                    ExitCode::usage);
  }
  OrderGenerator generator(flags.seed, mix);
  if (flags.to == "-") return generate_to_stdout(flags, generator);
  watch_for_interrupt();
  const auto tally = generate_to(flags, generator);
  if (!tally.has_value()) return out.fail_here("pipeline generate", tally.error());
  tally->print(flags.json, true);
  return ExitCode::ok;
}

Result<std::uint64_t> read_count(std::string_view text) { return parse_number(text, 1, kCountMax); }
Result<std::uint64_t> read_seed(std::string_view text) {
  return parse_number(text, 0, std::numeric_limits<std::uint64_t>::max());
}
Result<std::uint64_t> read_partitions(std::string_view text) {
  return parse_number(text, 1, 65'536);
}

}  // namespace

void add_pipeline_generate(CLI::App& pipeline, Action& action) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* verb = add_verb(
      pipeline,
      {"generate", "Generate orders from a seed: valid, invalid, broken and duplicate ones.",
       "baton pipeline generate orders --count 1000 --invalid 2% \\\n"
       "    --to baton://127.0.0.1:7470/orders"},
      flags, run_generate, action);
  verb->add_option("WHAT", flags->what, "What to generate: orders.")->required()->type_name("");
  add_parsed(
      *verb, "--count", read_count,
      [flags = flags.get()](std::uint64_t value) { flags->count = value; },
      "The number of orders [1000].");
  add_parsed(
      *verb, "--seed", read_seed,
      [flags = flags.get()](std::uint64_t value) { flags->seed = value; },
      "The same seed generates the same orders [1].");
  const auto share = [&](const std::string& name, double& target, const std::string& help) {
    add_parsed(
        *verb, name, parse_percent, [&target](double percent) { target = percent; }, help)
        ->type_name("PERCENT");
  };
  share("--invalid", flags->invalid, "The share of orders that break a rule of the schema [0%].");
  share("--broken", flags->broken, "The share of orders that are not JSON [0%].");
  share("--duplicate", flags->duplicate, "The share of orders that repeat an earlier one [0%].");
  verb->add_option(
          "--to", flags->to,
          "Where to write them: - for standard output, baton://HOST:PORT/STREAM, "
          "baton-queue://HOST:PORT/QUEUE, kafka://HOST:PORT/TOPIC or "
          "nats://HOST:PORT/STREAM/SUBJECT.{partition}; with TLS batons://, batons-queue://, "
          "kafkas:// or natss:// [-].")
      ->type_name("URL");
  add_parsed(
      *verb, "--partitions", read_partitions,
      [flags = flags.get()](std::uint64_t value) {
        flags->partitions = static_cast<std::uint32_t>(value);
      },
      "The number of partitions of a NATS subject, 1 to 65536 [1].");
  add_json_flag(*verb, flags->json);
  add_tls_flags(*verb, flags->security);
  add_login_flags(*verb, flags->security);
  verb->add_option("--mechanism", flags->security.mechanism,
                   "How to log in to Kafka: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 [PLAIN].")
      ->check(CLI::IsMember({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}))
      ->type_name("NAME")
      ->group(kLoginGroup);
}

}  // namespace baton::cli
