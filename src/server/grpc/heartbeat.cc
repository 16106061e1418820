#include "server/grpc/heartbeat.h"

#include <chrono>

namespace baton {
namespace {

std::uint64_t in_ms(Duration duration) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

v1::HeartbeatAck to_proto(const HeartbeatAnswer& answer) {
  v1::HeartbeatAck ack;
  ack.set_number(answer.number);
  ack.set_broker_time_ns(answer.broker_time.ns);
  ack.set_heartbeat_ms(in_ms(answer.terms.heartbeat));
  ack.set_client_lease_ms(in_ms(answer.terms.client_lease));
  ack.set_broker_lease_ms(in_ms(answer.terms.broker_lease));
  return ack;
}

}  // namespace baton
