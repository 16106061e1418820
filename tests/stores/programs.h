#pragma once

#include <string>

#include "worker/nats/nats_version.h"

/// The servers that are installed here.
namespace baton::stores {

/// A program, or why it is missing.
struct Program {
  std::string path{};
  std::string missing{};  // Says how to get it; empty if it is there.
};

Program etcd_program();
/// The nats-server of Debian: 2.9.10 there, with a compare-and-set that is broken on clusters.
Program debian_nats_program();
/// A nats-server of at least `least`: the one that BATON_NATS_SERVER names, the one that `./dev
/// setup` builds from source where there is Go, or any other that is found.
Program nats_program(const coord::NatsVersion& least);

/// What `nats-server --version` says.
coord::NatsVersion nats_version_of(const std::string& path);

}  // namespace baton::stores
