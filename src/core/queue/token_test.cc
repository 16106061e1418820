#include "core/queue/token.h"

#include <set>

#include <gtest/gtest.h>

#include "base/random.h"

namespace baton {
namespace {

constexpr std::uint64_t kShards = 4;
constexpr LeaseToken kLease{.boot = 3, .number = 300};

SipKey some_key() {
  SipKey key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(17 * i + 5);
  return key;
}

TokenSeal seal() { return {.key = some_key(), .shards = kShards}; }

/// The name of a queue that is not in the shard of `queue`.
std::string elsewhere(const std::string& queue) {
  const QueueTokens own = seal().of(queue);
  for (int i = 0;; ++i) {
    std::string other = queue + std::to_string(i);
    if (own.seal(kLease)[1] != seal().of(other).seal(kLease)[1]) return other;
  }
}

void expect_lost(const Result<LeaseToken>& opened, std::string_view why) {
  ASSERT_FALSE(opened.has_value()) << why;
  EXPECT_EQ(opened.error().code, Errc::lease_lost) << why;
}

TEST(LeaseTokens, AreOpenedAsTheyWereSealedAndTakeTheBytesTheySay) {
  const QueueTokens tokens = seal().of("jobs");
  for (const LeaseToken lease :
       {kLease, LeaseToken{.boot = 1, .number = 1}, LeaseToken{.boot = ~0ULL, .number = ~0ULL}}) {
    const std::string shown = tokens.seal(lease);
    EXPECT_EQ(shown.size(), tokens.size_of(lease));
    ASSERT_TRUE(tokens.open(shown).has_value());
    EXPECT_EQ(*tokens.open(shown), lease);
  }
}

// A client could once ack the lease after its own by adding one to the number.
TEST(LeaseTokens, OneThatWasMadeOfAnotherIsALostLease) {
  const QueueTokens tokens = seal().of("jobs");
  const std::string shown = tokens.seal(kLease);
  for (std::size_t bit = 0; bit < shown.size() * 8; ++bit) {
    std::string flipped = shown;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    expect_lost(tokens.open(flipped), "bit " + std::to_string(bit));
  }
  for (std::size_t size = 0; size < shown.size(); ++size) {
    expect_lost(tokens.open(shown.substr(0, size)), "cut");
    expect_lost(tokens.open(shown.substr(shown.size() - size)), "cut in front");
  }
  expect_lost(tokens.open(shown + '\0'), "longer");
  expect_lost(tokens.open('\1' + shown), "longer in front");
  // The proof of this lease is not valid for other leases or boots.
  const std::string proof = shown.substr(shown.size() - 8);
  for (const LeaseToken other :
       {LeaseToken{.boot = 3, .number = 299}, LeaseToken{.boot = 3, .number = 301},
        LeaseToken{.boot = 2, .number = 300}, LeaseToken{.boot = 4, .number = 300}}) {
    std::string guessed = tokens.seal(other);
    guessed.replace(guessed.size() - 8, 8, proof);
    expect_lost(tokens.open(guessed), "a neighbour");
  }
}

TEST(LeaseTokens, OneOfAnotherQueueShardOrKeyIsALostLease) {
  const QueueTokens tokens = seal().of("jobs");
  expect_lost(tokens.open(seal().of("jobs.dlq").seal(kLease)), "its dead-letter queue");
  expect_lost(tokens.open(seal().of(elsewhere("jobs")).seal(kLease)), "another shard");
  TokenSeal other = seal();
  other.key[15] ^= 1U;
  expect_lost(tokens.open(other.of("jobs").seal(kLease)), "another key");
  // The form of tokens before they had a proof.
  expect_lost(tokens.open(std::string("\x03\xac\x02", 3)), "boot and number alone");
}

TEST(LeaseTokens, BytesOfChanceAreALostLease) {
  const QueueTokens tokens = seal().of("jobs");
  Random random(7);
  for (int i = 0; i < 100'000; ++i) {
    std::string bytes;
    for (std::uint64_t left = random.below(30); left > 0; --left) {
      bytes.push_back(static_cast<char>(random.below(256)));
    }
    expect_lost(tokens.open(bytes), "chance");
  }
}

// A message in its queue and in a dead-letter queue of another shard once had leases with the same
// token.
TEST(LeaseTokens, NoTwoLeasesOfABrokerHaveTheSame) {
  std::set<std::string> all;
  std::size_t made = 0;
  for (const std::string& queue :
       {std::string("jobs"), std::string("jobs.dlq"), elsewhere("jobs")}) {
    for (std::uint64_t boot = 1; boot <= 3; ++boot) {
      for (std::uint64_t number = 1; number <= 300; ++number) {
        all.insert(seal().of(queue).seal({.boot = boot, .number = number}));
        ++made;
      }
    }
  }
  EXPECT_EQ(all.size(), made);
}

}  // namespace
}  // namespace baton
