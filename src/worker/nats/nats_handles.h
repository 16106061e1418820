#pragma once

#include <memory>

#include <nats/nats.h>

namespace baton::coord {

/// Owners of libnats' objects.
template <auto Destroy>
struct NatsDestroy {
  template <class T>
  void operator()(T* object) const {
    Destroy(object);
  }
};
using NatsOptions = std::unique_ptr<natsOptions, NatsDestroy<natsOptions_Destroy>>;
using NatsConnection = std::unique_ptr<natsConnection, NatsDestroy<natsConnection_Destroy>>;
using NatsJetStream = std::unique_ptr<jsCtx, NatsDestroy<jsCtx_Destroy>>;
using NatsMessage = std::unique_ptr<natsMsg, NatsDestroy<natsMsg_Destroy>>;
using NatsPubAck = std::unique_ptr<jsPubAck, NatsDestroy<jsPubAck_Destroy>>;
using NatsConsumerInfo = std::unique_ptr<jsConsumerInfo, NatsDestroy<jsConsumerInfo_Destroy>>;

}  // namespace baton::coord
