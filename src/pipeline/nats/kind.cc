#include "pipeline/nats/kind.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "pipeline/nats/nats_publisher.h"
#include "pipeline/nats/nats_source.h"

namespace baton::pipeline {
namespace {

/// The key determines the partition: {partition} in the subject.
class NatsOutput : public RecordOutput {
 public:
  static Result<std::unique_ptr<RecordOutput>> open(const Endpoint& endpoint,
                                                    std::uint32_t partitions) {
    const std::size_t slash = endpoint.name.find('/');
    if (slash == std::string::npos || partitions == 0) {
      return Error{Errc::invalid_argument,
                   fmt::format("{} has no SUBJECT behind the stream's name", endpoint.url)};
    }
    BATON_TRY(auto publisher, NatsPublisher::open(endpoint.address, endpoint.name.substr(0, slash),
                                                  endpoint.security));
    std::unique_ptr<NatsOutput> output(new NatsOutput(std::move(publisher)));
    for (std::uint32_t partition = 0; partition < partitions; ++partition) {
      std::string subject = endpoint.name.substr(slash + 1);
      constexpr std::string_view kPlace = "{partition}";
      const std::size_t place = subject.find(kPlace);
      if (place != std::string::npos) {
        subject.replace(place, kPlace.size(), std::to_string(partition));
      }
      output->subjects_.push_back(std::move(subject));
    }
    return output;
  }

  Status send(Record record) override {
    const std::string& subject = subjects_[hash64(record.key) % subjects_.size()];
    if (!record.key.empty()) record.headers.emplace_back("baton-key", record.key);
    return publisher_->publish(subject, record.headers, record.value);
  }
  Status flush(std::chrono::milliseconds timeout) override { return publisher_->flush(timeout); }

 private:
  explicit NatsOutput(std::unique_ptr<NatsPublisher> publisher)
      : publisher_(std::move(publisher)) {}
  std::unique_ptr<NatsPublisher> publisher_;
  std::vector<std::string> subjects_;
};

Result<std::unique_ptr<RecordOutput>> open_output(const Endpoint& endpoint,
                                                  const OutputOptions& options) {
  return NatsOutput::open(endpoint, options.partitions);
}

Status check(const PipelineConfig& config) {
  if (config.source.partitions != 0) return {};
  return need(config, "", "source.partitions", "into how many the subject is divided");
}

Result<std::unique_ptr<Source>> make_source(const PipelineConfig& config) {
  const std::string& name = config.source.endpoint.name;
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) {
    return Error{Errc::invalid_argument,
                 fmt::format("source.url: {} has no SUBJECT behind the stream's name",
                             config.source.endpoint.url)};
  }
  NatsSourceOptions options;
  options.servers = config.source.endpoint.address;
  options.security = config.source.endpoint.security;
  options.stream = name.substr(0, slash);
  options.subject = name.substr(slash + 1);
  options.partitions = config.source.partitions;
  options.group = config.source.group;
  options.from_next = config.source.from == "next";
  options.log = config.engine.log;
  return std::make_unique<NatsSource>(std::move(options));
}

}  // namespace

const SourceKind kNatsSource{.check = check, .make = make_source, .open_output = open_output};

}  // namespace baton::pipeline
