// Partition, offset and epoch are numbers of three types: a program that swaps two of them does not
// compile. What must not compile is asked for here, so a type that gives way fails the build.

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <baton/client.h>
#include <gtest/gtest.h>

namespace baton::client {
namespace {

template <class To, class From>
constexpr bool kTakes = std::is_convertible_v<From, To> || std::is_assignable_v<To&, From>;
template <class One, class Other>
constexpr bool kCompares = requires(One one, Other other) { one == other; };
template <class... Arguments>
constexpr bool kStoresOffset =
    requires(Group group, Arguments... arguments) { group.store_offset(arguments...); };
template <class... Arguments>
constexpr bool kMayAct =
    requires(Worker worker, Arguments... arguments) { worker.may_act(arguments...); };

static_assert(!kTakes<PartitionNumber, Offset> && !kTakes<PartitionNumber, Epoch>);
static_assert(!kTakes<Offset, PartitionNumber> && !kTakes<Offset, Epoch>);
static_assert(!kTakes<Epoch, PartitionNumber> && !kTakes<Epoch, Offset>);
static_assert(!kTakes<std::optional<Offset>, PartitionNumber>);

// Nor does a plain number stand for one of them, or the other way round.
static_assert(!kTakes<PartitionNumber, std::uint32_t> && !kTakes<std::uint32_t, PartitionNumber>);
static_assert(!kTakes<Offset, std::int64_t> && !kTakes<std::int64_t, Offset>);
static_assert(!kTakes<Epoch, std::uint64_t> && !kTakes<std::uint64_t, Epoch>);

static_assert(kCompares<Offset, Offset> && !kCompares<Offset, PartitionNumber>);
static_assert(!kCompares<Offset, std::int64_t>);

static_assert(kStoresOffset<PartitionNumber, Offset>);
static_assert(!kStoresOffset<Offset, PartitionNumber> && !kStoresOffset<int, int>);
static_assert(kMayAct<PartitionNumber, Epoch>);
static_assert(!kMayAct<Epoch, PartitionNumber> && !kMayAct<int, int>);

static_assert(std::same_as<decltype(Record::partition), PartitionNumber>);
static_assert(std::same_as<decltype(Record::offset), Offset>);
static_assert(std::same_as<decltype(RecordBatch::epoch), Epoch>);

TEST(Numbers, APositionHasOneOfEach) {
  const RecordBatch batch{
      .partition = PartitionNumber{1}, .epoch = Epoch{2}, .records = {}, .next_offset = Offset{3}};
  EXPECT_EQ(
      batch.position(),
      (StreamPosition{.partition = PartitionNumber{1}, .epoch = Epoch{2}, .offset = Offset{3}}));
  EXPECT_EQ(StreamPosition{}.offset, kNoOffset);
}

}  // namespace
}  // namespace baton::client
