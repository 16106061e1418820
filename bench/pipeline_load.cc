// The throughput of a sink without a pipeline around it: the baselines of bench/bench_pipeline.py.
//
//   bare    rows that were decoded before, in batches, a thread for each lane
//   single  the loop that one writes first: decode an order, BEGIN, a prepared INSERT for each row,
//           COMMIT (PostgreSQL only)
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <libpq-fe.h>

#include "base/hash.h"
#include "pipeline/app/config.h"
#include "pipeline/app/example.h"
#include "pipeline/app/parts.h"
#include "pipeline/ends/sql_rows.h"
#include "pipeline/engine/owned_partition.h"
#include "pipeline/orders/order_generator.h"

namespace {

using namespace baton;
using namespace baton::pipeline;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string mode = "bare";
  std::string sink;
  std::uint64_t orders = 10'000;
  std::uint32_t lanes = 4;
  std::size_t batch = 500;
};

[[noreturn]] void fail(const std::string& why) {
  fmt::print(stderr, "bench_pipeline_load: {}\n", why);
  std::exit(1);
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// One thread's share, decoded.
std::vector<Items> prepare(const Options& options, Sink& sink) {
  const orders::OrderGenerator generator(1, {.invalid = 0, .broken = 0, .duplicate = 0});
  const auto preparer = sink.preparer();
  const auto assignment = std::make_shared<OwnedPartition>(0, 1, 0);
  std::vector<Items> lanes(options.lanes);
  for (std::uint64_t i = 0; i < options.orders; ++i) {
    orders::GeneratedOrder order = generator.generate(i);
    Item item;
    item.record.key = order.order_uid;
    item.record.value = std::move(order.bytes);
    item.record.offset = static_cast<std::int64_t>(i);
    item.assignment = assignment;
    auto prepared = preparer->prepare(item.record);
    if (!prepared.has_value()) fail(prepared.error().text);
    item.prepared = *std::move(prepared);
    lanes[hash64(item.record.key) % options.lanes].push_back(std::move(item));
  }
  return lanes;
}

void write_lane(Items& items, LaneWriter& writer, std::size_t batch) {
  for (std::size_t begin = 0; begin < items.size(); begin += batch) {
    const auto error =
        writer.write(std::span(items).subspan(begin, std::min(batch, items.size() - begin)));
    if (error.has_value()) fail(error->text);
  }
}

class SingleLoop {
 public:
  SingleLoop(const std::string& url, const schema::Mapping& mapping) : mapping_(mapping) {
    connection_ = PQconnectdb(url.c_str());
    if (PQstatus(connection_) != CONNECTION_OK) fail(PQerrorMessage(connection_));
    for (std::size_t table = 0; table < mapping.tables().size(); ++table) prepare(table);
  }
  ~SingleLoop() { PQfinish(connection_); }
  SingleLoop(const SingleLoop&) = delete;
  SingleLoop& operator=(const SingleLoop&) = delete;

  void write(const schema::DocumentRows& rows, std::int64_t offset) {
    check(PQexec(connection_, "BEGIN"));
    for (const schema::DocumentRows::Row& row : rows.rows()) insert(rows, row, offset);
    check(PQexec(connection_, "COMMIT"));
  }

 private:
  void prepare(std::size_t table) {
    const schema::TableMapping& shape = mapping_.tables()[table];
    std::vector<std::string> names;
    for (const schema::ColumnMapping& column : shape.columns)
      names.push_back(sql_name(column.name));
    if (table == 0) names.insert(names.end(), {"_source", "_partition", "_offset"});
    std::vector<std::string> places;
    for (std::size_t i = 1; i <= names.size(); ++i) places.push_back(fmt::format("${}", i));
    const std::string sql = fmt::format("INSERT INTO {} ({}) VALUES ({}){}", sql_name(shape.name),
                                        fmt::join(names, ", "), fmt::join(places, ", "),
                                        table == 0 ? " ON CONFLICT DO NOTHING" : "");
    check(PQprepare(connection_, fmt::format("t{}", table).c_str(), sql.c_str(), 0, nullptr));
  }
  void insert(const schema::DocumentRows& rows, const schema::DocumentRows::Row& row,
              std::int64_t offset) {
    std::vector<std::string> texts;
    std::vector<bool> nulls;
    for (std::size_t i = 0; i < mapping_.tables()[row.table].columns.size(); ++i) {
      const schema::Cell cell = rows.cell(row, i);
      nulls.push_back(schema::is_null(cell));
      texts.emplace_back(nulls.back() ? schema::Cell("") : cell);
    }
    if (row.table == 0) {
      texts.insert(texts.end(), {"single", "0", std::to_string(offset)});
      nulls.insert(nulls.end(), 3, false);
    }
    std::vector<const char*> values;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      values.push_back(nulls[i] ? nullptr : texts[i].c_str());
    }
    check(PQexecPrepared(connection_, fmt::format("t{}", row.table).c_str(),
                         static_cast<int>(values.size()), values.data(), nullptr, nullptr, 0));
  }
  void check(PGresult* result) {
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail(PQerrorMessage(connection_));
    PQclear(result);
  }

  const schema::Mapping& mapping_;
  PGconn* connection_ = nullptr;
};

void single(const Options& options, Sink& sink, const schema::Mapping& mapping) {
  const orders::OrderGenerator generator(1, {.invalid = 0, .broken = 0, .duplicate = 0});
  const auto preparer = sink.preparer();
  SingleLoop loop(options.sink, mapping);
  for (std::uint64_t i = 0; i < options.orders; ++i) {
    Record record;
    record.value = generator.generate(i).bytes;
    const auto prepared = preparer->prepare(record);
    if (!prepared.has_value()) fail(prepared.error().text);
    loop.write(static_cast<const SqlPrepared&>(**prepared).rows, static_cast<std::int64_t>(i));
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--mode") options.mode = value;
    if (name == "--sink") options.sink = value;
    if (name == "--orders") options.orders = std::stoull(value);
    if (name == "--lanes") options.lanes = static_cast<std::uint32_t>(std::stoul(value));
    if (name == "--batch") options.batch = std::stoull(value);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const auto config = parse_config(example_config("bench"), "example",
                                   {{"BATON_PIPELINE__SINK__URL", options.sink},
                                    {"BATON_PIPELINE__LANES", std::to_string(options.lanes)}});
  if (!config.has_value()) fail(config.error().text);
  const auto schema = read_schema(*config);
  if (!schema.has_value()) fail(schema.error().text);
  auto sink = make_sink(*config, "bare", *schema);
  if (!sink.has_value()) fail(sink.error().text);
  const auto checked = (*sink)->check(true);
  if (!checked.has_value()) fail(checked.error().text);

  Clock::time_point began;
  double cpu = 0;
  if (options.mode == "bare") {
    std::vector<Items> lanes = prepare(options, **sink);
    began = Clock::now();
    cpu = cpu_seconds();
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < options.lanes; ++i) {
      threads.emplace_back([&, i] { write_lane(lanes[i], *(*sink)->writer(i), options.batch); });
    }
    threads.clear();
  } else {
    const auto mapping = schema::Mapping::compile(config->rows);
    if (!mapping.has_value()) fail(mapping.error().text);
    began = Clock::now();
    cpu = cpu_seconds();
    single(options, **sink, *mapping);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  const auto orders = static_cast<double>(options.orders);
  fmt::print("{{\"messages\": {}, \"rate\": {:.1f}, \"client_cpu_us\": {:.2f}}}\n", options.orders,
             orders / seconds, (cpu_seconds() - cpu) * 1e6 / orders);
  return 0;
}
