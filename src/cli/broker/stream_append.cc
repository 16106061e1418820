#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/base/parse.h"
#include "cli/broker/commands.h"
#include "cli/broker/payloads.h"
#include "cli/broker/stream_flags.h"
#include "cli/broker/stream_output.h"

namespace baton::cli {
namespace {

using client::AppendResult;
using client::NewRecord;

constexpr PayloadWords kAppendWords{
    .verb = "append", .item = "record", .payload = "value", .done = "appended"};

struct AppendFlags : StreamFlags {
  PayloadFlags payloads;
  bool quiet = false;
  std::string producer;
  client::RecordCompression compression = client::RecordCompression::none;
  NewRecord record;  // Everything except the value.
};

PayloadReport new_report(const AppendFlags& flags, bool many, std::optional<std::uint64_t> total) {
  return PayloadReport({.out = flags.output(),
                        .what = about_stream("append", flags.stream),
                        .words = kAppendWords,
                        .quiet = flags.quiet,
                        .many = many,
                        .total = total});
}

void add(PayloadReport& report, const AppendResult& result) {
  if (result.error.has_value()) return report.failed(to_json(result), *result.error);
  report.stored(to_json(result),
                fmt::format("partition {} offset {}", result.partition.value, result.offset.value));
}

ExitCode append_one(const AppendFlags& flags, std::string value) {
  const std::string what = about_stream("append", flags.stream);
  return with_broker(flags, what, [&](const client::Broker& broker, const Output& out) {
    std::vector<NewRecord> records(1, flags.record);
    records[0].value = std::move(value);
    const auto results = broker.stream(flags.stream).append(records);
    if (!results) return out.fail(what, results.error());
    const AppendResult& result = results->at(0);
    if (!result.ok()) return out.fail(what, *result.error);
    PayloadReport report = new_report(flags, false, 1);
    add(report, result);
    return report.finish({});
  });
}

ExitCode append_many(const AppendFlags& flags, const Payloads& work) {
  const Output out = flags.output();
  const std::string what = about_stream("append", flags.stream);
  const auto broker = client::Broker::open(flags.connection());
  if (!broker) return out.fail(what, broker.error());
  auto producer = broker->stream(flags.stream)
                      .producer({.producer = flags.producer, .compression = flags.compression});
  if (!producer) return out.fail(what, producer.error());
  PayloadReport report = new_report(flags, work.are_many(), work.total);
  const auto send = [&](std::string value) {
    NewRecord record = flags.record;
    record.value = std::move(value);
    // The callbacks run one at a time, except those of records refused at once, which run here.
    producer->send(std::move(record),
                   [&report](const AppendResult& result) { add(report, result); });
  };
  return send_all(work, send, *producer, flags.timeout, report);
}

ExitCode run_append(const AppendFlags& flags) {
  const Output out = flags.output();
  const std::string what = about_stream("append", flags.stream);
  const Result<Payloads> work = payloads_of(flags.payloads, kAppendWords);
  if (!work) return out.fail_here(what, work.error());
  // A missing stream, partition or broker is reported at once.
  const ExitCode there = with_broker(flags, what, [&](const client::Broker& broker, const Output&) {
    const auto stream = broker.stream(flags.stream).describe();
    if (!stream) return out.fail(what, stream.error());
    if (!flags.record.partition) return ExitCode::ok;
    const Status status = check_partition(*stream, *flags.record.partition);
    return status ? ExitCode::ok : out.fail_here(what, status.error());
  });
  if (there != ExitCode::ok) return there;
  const bool plain = flags.producer.empty() && flags.compression == client::RecordCompression::none;
  if (work->total != 1 || !plain) return append_many(flags, *work);
  ExitCode code = ExitCode::ok;
  work->each([&](std::string value) { code = append_one(flags, std::move(value)); });
  return code;
}

void add_record_flags(CLI::App& command, AppendFlags& flags) {
  NewRecord& record = flags.record;
  command
      .add_option_function<std::string>(
          "--key", [&record](const std::string& key) { record.key = key; },
          "Records of one key go to one partition, in order.")
      ->type_name("KEY");
  add_parsed(
      command, "--partition", read_partition,
      [&record](PartitionNumber value) { record.partition = value; },
      "Append to this partition, whatever the key.");
  add_parsed_many(
      command, "--header", parse_header,
      [&record](std::pair<std::string, std::string> header) {
        record.headers.push_back(
            {.name = std::move(header.first), .value = std::move(header.second)});
      },
      "A header of the record. Repeatable.");
  add_parsed(
      command, "--compression", parse_record_compression,
      [&flags](client::RecordCompression codec) { flags.compression = codec; },
      "How batches are compressed: none [default], lz4, zstd, gzip or snappy.");
}

}  // namespace

void add_stream_append(CLI::App& stream, Action& action) {
  const auto flags = std::make_shared<AppendFlags>();
  CLI::App* command = add_verb(
      stream,
      {.name = "append",
       .help = "Append records. Prints the partition and offset of each record once it is stored; "
               "for more than 10 records, a summary.",
       .example = "baton stream append events hello --key tenant-a --header type=greeting\n"
                  "  baton stream append events --count 100000 --size 1KiB \\\n"
                  "    --compression zstd\n"
                  "  seq 1000 | baton stream append events -"},
      flags, run_append, action);
  add_stream_argument(*command, *flags);
  add_payload_flags(*command, flags->payloads, kAppendWords);
  command
      ->add_option("--producer", flags->producer,
                   "Append as this producer. An older process of the same name is fenced off.")
      ->type_name("NAME");
  command->add_flag("-q,--quiet", flags->quiet,
                    "Print no offsets; with --json, print only the summary.");
  add_record_flags(*command, *flags);
}

}  // namespace baton::cli
