#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <baton/client.h>
#include <grpcpp/channel.h>

#include "e2e/process.h"

namespace baton::e2e {

/// The real `baton server` on a data folder of its own, at a free port of this machine which it
/// keeps when it is started again. Owned by one test; ends with it.
class BrokerProcess {
 public:
  /// `flags` are used for every start; --data, --listen, --http and --ready-file are always given.
  explicit BrokerProcess(std::vector<std::string> flags = {});

  /// Starts it and waits until it serves. False if it ended instead, or took longer.
  bool start(milliseconds within = seconds{60});
  /// Starts it without waiting: for brokers that are expected to refuse.
  void launch();
  /// Waits for it to end by itself.
  std::optional<int> wait(milliseconds within) { return child_->wait(within); }
  /// SIGKILL.
  void kill() { child_->kill(); }
  /// Sends SIGTERM; returns its exit code, or nullopt if it runs for longer than `within`.
  std::optional<int> terminate(milliseconds within = seconds{30});
  void signal(int number) const { child_->signal(number); }
  void pause() const { child_->pause(); }
  [[nodiscard]] pid_t pid() const { return child_->pid(); }
  [[nodiscard]] bool is_running() { return child_ && !child_->exit_code(); }

  /// The flags of later starts.
  std::vector<std::string>& flags() { return flags_; }
  /// A command that later starts are run under, such as prlimit; it must exec what it is given.
  void run_under(std::vector<std::string> wrapper) { wrapper_ = std::move(wrapper); }
  void use_data(std::string folder) { data_ = std::move(folder); }
  [[nodiscard]] const std::string& data() const { return data_; }
  [[nodiscard]] std::string address() const;
  [[nodiscard]] int http_port() const { return http_port_; }
  /// Everything it has logged, over all of its lives.
  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }
  [[nodiscard]] const TempFolder& folder() const { return folder_; }

  // Ways to talk to it.

  /// `baton ARGUMENTS --address ...`.
  [[nodiscard]] CommandResult cli(std::vector<std::string> arguments,
                                  std::string_view in = {}) const;
  [[nodiscard]] client::ConnectionOptions connection() const;
  [[nodiscard]] client::Broker client() const;
  /// For generated stubs.
  [[nodiscard]] std::shared_ptr<grpc::Channel> channel() const;
  /// The body of an HTTP response; nullopt unless its status is 200.
  [[nodiscard]] std::optional<std::string> http_get(std::string_view path) const;

  // Steps that many tests need; a failure fails the test.

  void create(const std::string& queue, const client::QueueSettings& settings = {}) const;
  [[nodiscard]] client::QueueStats stats(const std::string& queue) const;
  /// Ready, leased and delayed messages.
  [[nodiscard]] std::uint64_t depth(const std::string& queue) const;
  /// Sends payloads and returns their ids.
  std::vector<std::string> send(const std::string& queue, std::vector<std::string> payloads) const;
  /// Makes a checkpoint, and returns the number of rows per column family.
  [[nodiscard]] std::map<std::string, std::uint64_t> rows_after_checkpoint() const;

 private:
  TempFolder folder_;
  std::string data_;
  std::vector<std::string> flags_;
  std::vector<std::string> wrapper_;
  int grpc_port_ = 0;
  int http_port_ = 0;
  std::unique_ptr<ChildProcess> child_;
};

/// A stream that is registered with `queue`; fails the test if that is impossible.
std::unique_ptr<client::LeaseStream> open_stream(const BrokerProcess& broker,
                                                 const std::string& queue,
                                                 client::LeaseStreamOptions options = {});

/// Takes exactly `count` messages, or fewer if they do not come in time.
std::vector<client::LeasedMessage> take(client::LeaseStream& stream, std::size_t count,
                                        milliseconds within = seconds{20});

std::vector<std::string> payloads_of(const std::vector<client::LeasedMessage>& messages);

/// `count` payloads that begin with `name` and end with a number.
std::vector<std::string> numbered(std::string_view name, std::size_t count);

}  // namespace baton::e2e
