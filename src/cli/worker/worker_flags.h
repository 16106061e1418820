#pragma once

#include <string>

#include "base/result.h"
#include "cli/base/command.h"
#include "cli/worker/worker_timing.h"

/// What the verbs of `baton worker` and `baton bench failover` share.
namespace baton::cli {

/// The flags that name a group and its store.
struct GroupOfWorkersFlags {
  std::string store = default_store(process_environment());
  std::string group;
  secure::Settings security;
  bool json = false;

  [[nodiscard]] Output output() const { return Output(json); }
};
/// --store, and the flags for its TLS and login.
void add_store_flags(CLI::App& command, GroupOfWorkersFlags& flags);

/// TLS and login for a store: flags, completed by the environment, and the files behind them.
Result<client::SecurityOptions> store_security(const std::string& store,
                                               const secure::Settings& given,
                                               const Environment& environment);

inline constexpr const char* kStoreHelp =
    "The store: baton://HOST:PORT, nats://HOST:PORT[,...] or etcd://HOST:PORT[,...], with TLS "
    "batons://, natss:// or etcds://, and with /BUCKET at the end if the bucket is not "
    "baton-leases [$BATON_STORE, or the broker at $BATON_ADDRESS, or 127.0.0.1:7470].";

// The verbs of `baton worker` that have a file of their own.
void add_worker_run(CLI::App& worker, Action& action);
void add_worker_status(CLI::App& worker, Action& action);
/// The guardian of a runner's handlers; people do not start it.
void add_worker_guard(CLI::App& app, Action& action);

}  // namespace baton::cli
