#include "server/app/server.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/logging/log.h"
#include "base/net/listen.h"
#include "base/time.h"
#include "cli/base/parse.h"
#include "cli/server/cluster.h"
#include "cli/server/commands.h"
#include "cli/server/config.h"
#include "server/shard/data_folder.h"
#include "server/shard/disk_share.h"
#include "server/shard/local_broker.h"
#include "server/shard/machine_list.h"
#include "storage/rocks/rocks_store.h"

namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Milliseconds kStopPoll{10};

struct ServerFlags {
  std::string config_file;
  // The values of the flags, which are applied after the config file.
  std::vector<std::pair<const Setting*, std::string>> values;
};

Result<ServerConfig> read_config(const ServerFlags& flags) {
  ServerConfig config;
  if (!flags.config_file.empty()) {
    std::ifstream file(flags.config_file, std::ios::binary);
    std::string text(kConfigBytesMax + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad() || !file.is_open() || (file.fail() && !file.eof())) {
      return Error{Errc::invalid_argument, fmt::format("cannot read the config file '{}': {}",
                                                       flags.config_file, std::strerror(errno))};
    }
    text.resize(static_cast<std::size_t>(file.gcount()));
    BATON_TRY_STATUS(apply_config(config, text, flags.config_file));
  }
  for (const auto& [setting, value] : flags.values) {
    BATON_TRY_STATUS(setting->set(config, value));
    config.given.insert_or_assign(std::string(setting->name), value);
  }
  if (config.data.empty()) {
    return Error{Errc::invalid_argument,
                 "no data folder: give --data DIR, or 'data: DIR' in the config file"};
  }
  return config;
}

/// Checks everything that can be refused before the data folder is touched.
Status check(const ServerConfig& config) {
  BATON_TRY_STATUS(ApiServer::check(config.api));
  BATON_TRY_STATUS(check_cluster(config));
  if (config.ready_file.empty()) return {};
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path file = fs::absolute(config.ready_file, ignored);
  errno = fs::is_directory(file, ignored) ? EISDIR : 0;
  if (errno == 0 && ::access(file.parent_path().c_str(), W_OK | X_OK) == 0) return {};
  return Error{Errc::invalid_argument, fmt::format("--ready-file {} cannot be written: {}",
                                                   config.ready_file, std::strerror(errno))};
}

/// Raises the process's limit of descriptors as far as the system allows, and divides them: at most
/// half are for connections, unless the operator says more; the rest is for files.
Status divide_descriptors(ServerConfig& config) {
  rlimit allowed{};
  ::getrlimit(RLIMIT_NOFILE, &allowed);
  allowed.rlim_cur = allowed.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &allowed);
  ::getrlimit(RLIMIT_NOFILE, &allowed);
  const auto descriptors = static_cast<std::size_t>(allowed.rlim_cur);
  const std::size_t most = descriptors - descriptors / 4;
  if (config.connections_max > most) {
    return Error{Errc::invalid_argument,
                 fmt::format("--connections-max is {}; the process may open {} descriptors "
                             "(ulimit -n), of which at most {} are for connections",
                             config.connections_max, descriptors, most)};
  }
  config.api.connections_max = config.connections_max;
  if (config.connections_max == 0) {
    config.api.connections_max = std::min(limits::kConnectionsDefault, descriptors / 2);
  }
  return {};
}

/// What an operator can do about the error.
std::string_view advice(Errc code) {
  switch (code) {
    case Errc::folder_in_use: return "; stop that broker, or choose another --data";
    case Errc::disk_full: return "; make room on that disk and start again";
    case Errc::io_error: return "; check the folder's owner, its permissions and its disk";
    default: return "";
  }
}

/// `deposed` is called when another node takes a shard over.
Result<std::unique_ptr<LocalBroker>> open_broker(const ServerConfig& config,
                                                 std::function<void(std::size_t)> deposed) {
  BrokerOptions options{.data = config.data,
                        .fsync = config.fsync,
                        .shards = config.shards,
                        .shard = {},
                        .journal = {},
                        .fits_disk = true,
                        .open_store = {}};
  options.shard.checkpoint_interval = config.checkpoint_interval;
  options.open_store =
      [data = config.data](const std::string& folder) -> Result<std::unique_ptr<CheckpointStore>> {
    // The folder tells how many stores share the memory.
    BATON_TRY(const std::size_t shards, DataFolder::shards_of(data));
    RocksOptions rocks;
    rocks.disk_reserve_bytes = share_of_disk(data, shards).store_reserve_bytes;
    rocks.cache_bytes = std::max(rocks.cache_bytes / shards, 4 * limits::kMiB);
    rocks.write_buffers_bytes_max =
        std::max(rocks.write_buffers_bytes_max / shards, 16 * limits::kMiB);
    rocks.write_buffer_bytes = std::max(rocks.write_buffer_bytes / shards, 8 * limits::kMiB);
    BATON_TRY(auto store, open_rocks_store(folder, kShardTables, rocks));
    return std::unique_ptr<CheckpointStore>(std::move(store));
  };
  if (!config.cluster.empty()) BATON_TRY_STATUS(join_cluster(config, options));
  options.deposed = std::move(deposed);
  return LocalBroker::open(std::move(options));
}

std::string fsync_text(const FsyncMode& mode) {
  switch (mode.kind) {
    case FsyncMode::Kind::always: return "always";
    case FsyncMode::Kind::never: return "never";
    case FsyncMode::Kind::interval:
      return fmt::format("interval:{}",
                         std::chrono::duration_cast<Milliseconds>(mode.interval).count());
  }
  return "always";
}

std::string_view log_level_text(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
  }
  return "info";
}

/// `listen` with the port that the system chose.
std::string bound_address(const std::string& listen, int port) {
  const Result<ListenAddress> address = parse_listen(listen);
  if (!address || address->unix_socket) return listen;
  ListenAddress bound = *address;
  bound.port = static_cast<std::uint16_t>(port);
  return bound.to_string();
}

/// A reader sees the whole file or none.
Status write_ready_file(const std::string& path, const ApiServer& api) {
  const std::string draft = fmt::format("{}.{}", path, ::getpid());
  {
    std::ofstream file(draft, std::ios::trunc);
    file << api.grpc_port() << ' ' << api.http_port() << ' ' << ::getpid() << '\n';
    if (!file.flush()) {
      return Error{Errc::io_error,
                   fmt::format("cannot write '{}': {}", draft, std::strerror(errno))};
    }
  }
  // The file only holds ports, and other users may read it.
  ::chmod(draft.c_str(), 0644);
  if (std::rename(draft.c_str(), path.c_str()) != 0) {
    return Error{Errc::io_error, fmt::format("cannot write '{}': {}", path, std::strerror(errno))};
  }
  return {};
}

sigset_t handled_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

[[noreturn]] void end_at_once(std::string_view why) {
  spdlog::error("event=ended_at_once reason={}", log_value(why));
  spdlog::shutdown();
  std::_Exit(static_cast<int>(ExitCode::failure));
}

/// A broker and its servers, for as long as the process lives. Used by the main thread.
class Server {
 public:
  explicit Server(ServerConfig config) : config_(std::move(config)) {}

  Status start() {
    const auto began = Clock::now();
    if (!config_.ready_file.empty()) ::unlink(config_.ready_file.c_str());
    spdlog::info("event=starting version={} pid={} data={}", BATON_VERSION, ::getpid(),
                 log_value(config_.data));
    BATON_TRY(broker_, open_broker(config_, [this](std::size_t shard) { give_up(shard); }));
    const auto recovered = Clock::now();
    BATON_TRY(api_, ApiServer::start(*broker_, config_.api));
    api_->set_ready(true);
    if (!config_.ready_file.empty()) {
      BATON_TRY_STATUS(write_ready_file(config_.ready_file, *api_));
    }
    log_ready(std::chrono::duration_cast<Milliseconds>(recovered - began));
    return {};
  }

  /// Blocks until a signal asks to stop; on SIGHUP reloads the config that `read` returns.
  /// `signals` must be blocked in every thread.
  template <class Read>
  void wait(const sigset_t& signals, Read read) {
    int signal = 0;
    while (sigwait(&signals, &signal) != 0 || signal == SIGHUP) {
      if (signal == SIGHUP) reload(read());
    }
    spdlog::info("event=stopping signal={}", sigabbrev_np(signal));
  }

  /// Whether another node has taken a shard over.
  [[nodiscard]] bool is_deposed() const { return deposed_; }

  /// Stops in order. Ends the process at a second signal, or when it takes too long.
  void stop(const sigset_t& signals) {
    const auto began = Clock::now();
    std::atomic<bool> done = false;
    std::thread stopper([this, &done] {
      finish();
      done = true;
    });
    const timespec poll{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kStopPoll).count()};
    while (!done) {
      const int signal = sigtimedwait(&signals, nullptr, &poll);
      if (signal > 0 && signal != SIGHUP) end_at_once("a second signal");
      if (Clock::now() - began > config_.stop_timeout) {
        end_at_once(
            fmt::format("the stop took longer than {}", format_duration(config_.stop_timeout)));
      }
    }
    stopper.join();
    spdlog::info("event=stopped stop_ms={}",
                 std::chrono::duration_cast<Milliseconds>(Clock::now() - began).count());
  }

 private:
  /// Applies settings that can change at run time, names those that cannot, and never ends the
  /// broker.
  void reload(const Result<ServerConfig>& wanted) {
    if (!wanted) return fail_reload(wanted.error());
    for (const std::string& name : needs_restart(config_, *wanted)) {
      spdlog::warn("event=reload_ignored setting={} reason=\"needs a restart\"", name);
    }
    if (const Status status = reload_certificates(wanted->api); !status) {
      return fail_reload(status.error());
    }
    set_log_level(wanted->log_level);
    spdlog::info("event=reloaded log_level={} tls_cert={}", log_level_text(wanted->log_level),
                 config_.api.tls_cert.empty() ? "none" : log_value(config_.api.tls_cert));
  }
  /// A file that appears or disappears needs a restart, and the old setting stays.
  Status reload_certificates(const ServerOptions& wanted) {
    ServerOptions files = config_.api;
    for (const auto file :
         {&ServerOptions::tls_cert, &ServerOptions::tls_key, &ServerOptions::tls_ca}) {
      if ((files.*file).empty() == (wanted.*file).empty()) files.*file = wanted.*file;
    }
    BATON_TRY_STATUS(api_->reload_certificates(files));
    config_.api = std::move(files);
    return {};
  }
  /// A node without its shard is of no use: the whole process stops, as after a signal.
  void give_up(std::size_t shard) {
    if (deposed_.exchange(true)) return;
    spdlog::error(
        "event=deposed shard={} reason=\"another node has taken the shard over\" note=\"the "
        "process stops; run one node of a cluster at a time\"",
        shard);
    ::kill(::getpid(), SIGTERM);
  }

  static void fail_reload(const Error& error) {
    spdlog::error("event=reload_failed error={} note=\"everything stays as it was\"",
                  log_value(error.text));
  }

  void log_ready(Milliseconds recovery) const {
    const auto& options = config_.api;
    spdlog::info(
        "event=ready data={} listen={} http={} shards={} fsync={} tls={} "
        "connections_max={} boot={} recovery_ms={}",
        log_value(config_.data), log_value(bound_address(options.listen, api_->grpc_port())),
        options.http_listen.empty()
            ? "off"
            : log_value(bound_address(options.http_listen, api_->http_port())),
        broker_->shards(), fsync_text(config_.fsync), options.tls_cert.empty() ? "off" : "on",
        options.connections_max, broker_->stats(0).boot, recovery.count());
  }

  void finish() {
    if (!config_.ready_file.empty()) ::unlink(config_.ready_file.c_str());
    api_->stop_accepting();
    // Half of the time is for the calls, half for the last checkpoint.
    api_->shutdown(config_.stop_timeout / 2);
    spdlog::debug("event=calls_ended");
    const Status status = broker_->stop();
    if (!status) spdlog::error("event=checkpoint_failed error={}", log_value(status.error().text));
    api_.reset();
    broker_.reset();
  }

  ServerConfig config_;
  std::atomic<bool> deposed_ = false;
  std::unique_ptr<LocalBroker> broker_;
  std::unique_ptr<ApiServer> api_;  // After the broker, which must outlive it.
};

ExitCode run_server(const ServerFlags& flags) {
  Result<ServerConfig> config = read_config(flags);
  if (!config) return Output(false).fail_here("server", config.error());
  const Output out(config->log_json);
  if (const Status status = check(*config); !status) return out.fail_here("server", status.error());
  if (const Status status = divide_descriptors(*config); !status) {
    return out.fail_here("server", status.error());
  }
  start_log(config->log_level, config->log_json);
  // Files written from here on, above all those of RocksDB, are readable only by their owner.
  ::umask(S_IRWXG | S_IRWXO);
  // Before any thread is started, so that all of them leave these signals to this one.
  const sigset_t signals = handled_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c)
  config->api.version = BATON_VERSION;
  config->api.data_folder = config->data;
  Server server(*config);
  if (const Status status = server.start(); !status) {
    Error error = status.error();
    if (error.text.empty()) error.text = errc_text(error.code);
    error.text += advice(error.code);
    return out.fail_here("server", error);
  }
  server.wait(signals, [&flags] { return read_config(flags); });
  server.stop(signals);
  return server.is_deposed() ? ExitCode::failure : ExitCode::ok;
}

void add_setting(CLI::App& command, const Setting& setting,
                 const std::shared_ptr<ServerFlags>& flags) {
  const std::string name = fmt::format("--{}", setting.name);
  const std::string help(setting.help);
  if (setting.value.empty()) {
    command.add_flag_callback(
        name, [&setting, flags] { flags->values.emplace_back(&setting, "true"); }, help);
    return;
  }
  const CLI::callback_t keep = [&setting, flags](const CLI::results_t& values) {
    flags->values.emplace_back(&setting, values.back());
    return true;
  };
  command.add_option(name, keep, help)
      ->type_name(std::string(setting.value))
      ->check(CLI::Validator(
          [&setting](std::string& value) {
            ServerConfig scratch;
            const Status status = setting.set(scratch, value);
            return status ? std::string() : status.error().text;
          },
          ""));
}

}  // namespace

void add_server_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ServerFlags>();
  CLI::App* command = add_verb(
      app,
      {.name = "server",
       .help = "Run a broker until SIGTERM or SIGINT. A new data folder takes about 200 MB "
               "for each shard: room for the journal, set aside in advance.",
       .example = "baton server --data /var/lib/baton --fsync always\n"
                  "  baton server --config /etc/baton.yaml"},
      flags, run_server, action);
  command
      ->add_option(
          "--config", flags->config_file,
          "A YAML file with lines 'name: value', named as the flags below. Flags win over it.")
      ->type_name("FILE");
  for (const Setting& setting : server_settings()) add_setting(*command, setting, flags);
}

}  // namespace baton::cli
