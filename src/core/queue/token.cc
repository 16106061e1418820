#include "core/queue/token.h"

#include <algorithm>

#include "base/bytes.h"
#include "core/queue/machine.h"

namespace baton {
namespace {

constexpr std::uint8_t kFormat = 1;
constexpr std::size_t kProofBytes = 8;

std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80U; value >>= 7U) ++size;
  return size;
}

SipKey key_of(const SipKey& key, std::string_view queue) {
  std::string bytes;
  for (const char half : {'a', 'b'}) Encoder(bytes).fixed(siphash(key, half + std::string(queue)));
  SipKey made{};
  std::ranges::copy(bytes, made.begin());
  return made;
}

}  // namespace

QueueTokens::QueueTokens(const SipKey& key, std::uint64_t shard, std::string_view queue)
    : key_(key_of(key, queue)), shard_(shard) {}

std::size_t QueueTokens::size_of(LeaseToken token) const {
  return 1 + varint_size(shard_) + varint_size(token.boot) + varint_size(token.number) +
         kProofBytes;
}

void QueueTokens::append(std::string& out, LeaseToken token) const {
  const std::size_t begin = out.size();
  Encoder encoder(out);
  encoder.u8(kFormat);
  encoder.varint(shard_);
  encoder.varint(token.boot);
  encoder.varint(token.number);
  encoder.fixed(siphash(key_, std::string_view(out).substr(begin)));
}

std::string QueueTokens::seal(LeaseToken token) const {
  std::string bytes;
  append(bytes, token);
  return bytes;
}

Result<LeaseToken> QueueTokens::open(std::string_view shown) const {
  const Error wrong{Errc::lease_lost,
                    "the lease token is none that this broker gave for the queue"};
  if (shown.size() <= kProofBytes) return wrong;
  const std::string_view body = shown.substr(0, shown.size() - kProofBytes);
  Decoder proof(shown.substr(body.size()));
  // One comparison of whole words: its duration tells nothing about single bytes.
  if ((siphash(key_, body) ^ proof.fixed<std::uint64_t>()) != 0) return wrong;
  Decoder in(body);
  const bool known = in.u8() == kFormat && in.varint() == shard_;
  LeaseToken token;
  token.boot = in.varint();
  token.number = in.varint();
  if (!known || !in.finish()) return wrong;
  return token;
}

QueueTokens TokenSeal::of(std::string_view queue) const {
  return {key, shard_of_queue(queue, shards), queue};
}

}  // namespace baton
