#include "pipeline/http/http_sink.h"

#include <algorithm>

#include <fmt/format.h>
#include <httplib.h>

#include "base/parse.h"
#include "pipeline/ends/json_records.h"
#include "pipeline/engine/owned_partition.h"
#include "pipeline/http/http_errors.h"

namespace baton::pipeline {
namespace {

using flow::ErrorClass;
using flow::SinkError;

constexpr std::uint64_t kRetryAfterMax = 1'000'000;
constexpr std::chrono::seconds kRetryAfterHeeded{300};  // A longer Retry-After is cut to this.
constexpr std::size_t kAnswerMax = 256;

void set_timeouts(httplib::Client& client, Duration timeout) {
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
  client.set_connection_timeout(time);
  client.set_read_timeout(time);
  client.set_write_timeout(time);
}

std::string text_of(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection: return "the connection is refused";
    case httplib::Error::ConnectionTimeout: return "the connection was not made in time";
    case httplib::Error::Read: return "no answer arrived, or it broke off";
    case httplib::Error::Write: return "the request could not be sent";
    case httplib::Error::SSLConnection: return "the TLS handshake failed";
    case httplib::Error::SSLLoadingCerts: return "the certificates cannot be loaded";
    case httplib::Error::SSLServerVerification:
      return "the certificate of the server is not trusted";
    default: return fmt::format("the request failed ({})", httplib::to_string(error));
  }
}

SinkError no_answer(httplib::Error error) {
  return {.error_class = ErrorClass::outage, .code = {}, .text = text_of(error)};
}

SinkError refusal(const httplib::Response& response) {
  SinkError error{.error_class = class_of_http(response.status),
                  .code = std::to_string(response.status),
                  .text = response.body.substr(0, kAnswerMax)};
  const auto seconds = parse_number(response.get_header_value("Retry-After"), 0, kRetryAfterMax);
  if (seconds.has_value()) {
    error.retry_after = std::min(std::chrono::seconds(*seconds), kRetryAfterHeeded);
  }
  return error;
}

}  // namespace

class HttpSink::Writer : public LaneWriter {
 public:
  explicit Writer(const HttpSink& sink) : sink_(sink), client_(sink.server_) {
    set_timeouts(client_, sink.options_.timeout);
    client_.set_keep_alive(true);
    client_.set_tcp_nodelay(true);
  }

  std::optional<SinkError> write(std::span<Item> items) override {
    for (Item& item : items) {
      // A partition may be revoked in the middle, and each answer may take long.
      if (item.assignment->dropped()) continue;
      if (auto error = post(item)) return error;
    }
    return std::nullopt;
  }

 private:
  std::optional<SinkError> post(Item& item) {
    const Record& record = item.record;
    httplib::Headers headers(sink_.options_.headers.begin(), sink_.options_.headers.end());
    headers.emplace("Idempotency-Key",
                    fmt::format("{}/{}/{}/{}", sink_.options_.pipeline, sink_.options_.source,
                                record.partition, record.offset));
    const httplib::Result answer =
        client_.Post(sink_.path_, headers, record.value, "application/json");
    if (!answer) return no_answer(answer.error());
    if (answer->status >= 200 && answer->status < 300) {
      item.fate = Fate::applied;
      return std::nullopt;
    }
    SinkError error = refusal(*answer);
    if (error.error_class != ErrorClass::duplicate) return error;
    item.fate = Fate::duplicate;
    return std::nullopt;
  }

  const HttpSink& sink_;
  httplib::Client client_;
};

Result<std::unique_ptr<HttpSink>> HttpSink::open(HttpSinkOptions options) {
  const std::string& url = options.url;
  const std::size_t host = url.find("://") + 3;
  const std::size_t slash = std::min(url.find('/', host), url.size());
  const std::string server = url.substr(0, slash);
  const std::string path = slash == url.size() ? "/" : url.substr(slash);
  if (slash == host || !httplib::Client(server).is_valid()) {
    return Error{Errc::invalid_argument, fmt::format("sink.url: '{}' is not an HTTP URL", url)};
  }
  return std::unique_ptr<HttpSink>(new HttpSink(std::move(options), server, path));
}

Result<Findings> HttpSink::check(bool /*apply*/) {
  int status = 0;
  if (const auto error = ask(status)) {
    return Error{Errc::unavailable, fmt::format("{}: {}", server_, error->text)};
  }
  // Many servers answer OPTIONS with 405 and accept a POST.
  constexpr int kMethodNotAllowed = 405;
  Findings findings;
  if (status != kMethodNotAllowed && class_of_http(status) == ErrorClass::config) {
    findings.push_back(warning(
        fmt::format("{}{} answers OPTIONS with {}; a POST that does would halt the pipeline",
                    server_, path_, status)));
  }
  return findings;
}

std::unique_ptr<Preparer> HttpSink::preparer() {
  return json_preparer(options_.schema, options_.document_bytes_max);
}

std::unique_ptr<LaneWriter> HttpSink::writer(std::uint32_t /*lane*/) {
  return std::make_unique<Writer>(*this);
}

std::optional<SinkError> HttpSink::probe() {
  int status = 0;  // Any status means that the server answers.
  return ask(status);
}

std::optional<SinkError> HttpSink::ask(int& status) {
  httplib::Client client(server_);
  set_timeouts(client, std::min<Duration>(options_.timeout, std::chrono::seconds(5)));
  const httplib::Headers headers(options_.headers.begin(), options_.headers.end());
  const httplib::Result answer = client.Options(path_, headers);
  if (!answer) return no_answer(answer.error());
  status = answer->status;
  return std::nullopt;
}

}  // namespace baton::pipeline
