#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "worker/nats/nats_link.h"
#include "worker/nats/nats_version.h"
#include "worker/stores/deadline.h"

/// The JetStream streams that carry the shards' logs.
namespace baton::loglet {

/// Which log: of which cluster, which shard, and the how many-eth of that shard.
struct LogName {
  std::string cluster{};     // Its name.
  std::string cluster_id{};  // Drawn when the cluster was made: a name can come back.
  std::uint32_t shard = 0;
  std::uint32_t generation = 1;
};

/// BATON_<cluster>_<shard>_<generation>
std::string log_stream(const LogName& name);
/// The one subject of a stream.
std::string log_subject(std::string_view stream);

/// Leaders of older versions count a proposal that failed, and then refuse good entries for ever
/// (nats-server issue 8057).
bool is_fit_for_logs(const coord::NatsVersion& version);
/// Asks every member of the NATS cluster for its version. One that does not answer is left out, as
/// long as another one does.
Status check_log_versions(coord::NatsLink& link, const coord::Deadline& deadline);

/// Creates the stream. One that exists is fine if it is the same cluster's.
Status create_log_stream(coord::NatsLink& link, const LogName& name, std::uint32_t replicas,
                         const coord::Deadline& deadline);
/// Fails with not_found if there is no such stream, and with failed_precondition, naming the
/// setting, if the stream could lose, refuse or change entries.
Status check_log_stream(coord::NatsLink& link, const LogName& name,
                        const coord::Deadline& deadline);

}  // namespace baton::loglet
