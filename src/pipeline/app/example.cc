#include "pipeline/app/example.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "pipeline/orders/orders.h"

namespace baton::pipeline {
namespace {

bool is_plain_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

/// Whether YAML reads the name as that text without quotes, also at the end of a URL. Quotes would
/// work too, but are harder to read.
bool is_plain(std::string_view name) {
  return std::ranges::all_of(name, is_plain_character) && name != "null" && name != "Null" &&
         name != "NULL" && !name.starts_with('-') && !name.starts_with('.');
}

}  // namespace

std::string example_config(const std::string& name, const std::string& address) {
  std::string text = fmt::format(
      R"(# A pipeline: records of a stream, checked against a JSON Schema, into the tables of a database.
# Every setting can come from the environment: BATON_PIPELINE__SINK__URL=sqlite:/data/orders.db wins over
# what stands here.
name: {3}{0}{3}

source:
  url: {3}baton-stream://{2}/{0}{3}
  # Or baton-queue://HOST:PORT/QUEUE, kafka://HOST:PORT,HOST:PORT/TOPIC,
  # nats://HOST:PORT/STREAM/SUBJECT.{{partition}} (with partitions: 8).
  # group: {3}{0}{3}              # Whose offsets are stored; the pipeline's name unless said otherwise.
  # from: first             # Where a group begins that has stored none: first or next. Of kafka also
                            # where it goes on when records are gone; without it, it halts then.
  # properties:             # Of kafka: what librdkafka is told, as security.protocol: ssl.
  # Of kafka, session_timeout (10s) says how long a killed pipeline's partitions have no owner.

sink:
  url: {3}sqlite:{0}.db{3}
  # Or postgres://USER@HOST:PORT/DATABASE (a password may come from PGPASSWORD), http://HOST:PORT/PATH,
  # stdout.
  # timeout: 30s            # Of one statement, or request.

# Records that will never go in, with the reason.
dead_letters:
  url: {3}baton-queue://{2}/{0}.dlq{3}
  # Or kafka://HOST:PORT/TOPIC, file:PATH.
  # redrives_max: 3         # So often a record may be sent back from there.

# What a record must look like. {1} is the shipped example; a path is a file.
schema: {1}
# record_max: 1MiB          # A larger record is a dead letter.

# delivery: at_least_once   # Or exactly_once_effect: offsets are kept in the sink, with the rows.
# workers: 4                # Threads that check and decode.
# lanes: 4                  # Threads that write; records of one key keep their order.
# order: key                # key, partition or none.
# on_duplicate: count       # Or dead_letter.
# window: {{records: 20000, bytes: 64MiB}}         # What may be in memory.
# batch: {{records: 500, bytes: 4MiB, linger: 5ms}}
# retry: {{attempts: 5, first: 100ms, most: 10s}}  # Of a batch, before the breaker opens.
# probe: {{first: 200ms, most: 10s}}  # While the sink is out: the first probe, and then how often.
# max_outage: 0ms           # Source or sink away for longer, and it ends with exit code 75; 0: it waits.
# storm: {{in_a_row: 100, of_last: 1000, percent: 20}}  # So many dead letters: halt, somebody must look.
# drain: 30s                # For what is in flight, when it ends.
# commit_interval: 200ms
# http: 127.0.0.1:7472      # Status, metrics, /readyz; or off.
# Of kafka, an id (or run --id) that each process has for itself: after a kill and a restart under the
# same id it has its partitions back at once.

# One row of the first table for each record; its key makes a record that comes again harmless.
)",
      name, kOrderSchema, address, is_plain(name) ? "" : "\"");
  const schema::RowMapping mapping = orders::order_mapping();
  text += fmt::format("key: {}\ntables:\n", mapping.key);
  for (const schema::TableMapping& table : mapping.tables) {
    text += fmt::format("  - name: {}\n", table.name);
    if (!table.rows.empty()) text += fmt::format("    rows: \"{}\"\n", table.rows);
    text += "    columns:\n";
    for (const schema::ColumnMapping& column : table.columns) {
      text += fmt::format("      {}: \"{} {}{}\"\n", column.name, to_string(column.type),
                          column.path, column.optional ? " optional" : "");
    }
  }
  return text;
}

}  // namespace baton::pipeline
