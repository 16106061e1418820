#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include <baton/strong.h>

#include "base/bytes.h"
#include "base/result.h"
#include "base/tagged.h"

/// Stored bytes that can grow. Facts, rows and settings begin with what they have always had, in
/// its order; whatever came later follows as numbered fields, up to the end:
///
///   fields   each: varint number * 2 + r, if r is 1: varint since, blob value
///   fact     varint kind * 8 + owner, blob body. A kind that is younger than format 2 begins its
///            body with a Need: varint since
///
/// A reader skips a field or a kind that it does not know, unless the writer has marked it: r is 1,
/// or since is not 0. Then the reader refuses, and says which format is needed. A writer marks what
/// an older reader would go wrong without. What is not marked may also be lost when an older
/// version writes the row again.
namespace baton {

/// The greatest format this version knows, and the one it writes. Grows with every field and kind
/// that must be understood; one that may be skipped needs no new format.
inline constexpr std::uint64_t kStoreFormat = 2;

/// What a reader shall do that does not know a field, or a kind of fact.
struct Need {
  std::uint64_t since = 0;  // 0: skip it. Otherwise: refuse; it takes a reader of this format.
};

// Writing a field. What a field's reader takes for granted when it is absent is not written.
void put_field(Encoder& out, std::uint64_t number, std::string_view value, Need need = {});
void put_field(Encoder& out, std::uint64_t number, std::uint64_t value, Need need = {});

/// Reads the numbered fields that are left in a decoder:
///
///   for (FieldReader fields(in); fields.next();) {
///     if (fields.number() == 1) { row.depth = fields.value().varint(); } else { fields.skip(); }
///   }
///
/// A value that cannot be read fails the decoder. A value may be longer than what is read of it.
class FieldReader {
 public:
  explicit FieldReader(Decoder& in) : in_(in) {}

  bool next();
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] Decoder& value() { return value_; }
  /// The reader does not know the field: refuses it if it must be understood.
  void skip();

 private:
  Decoder& in_;
  Decoder value_{{}};
  std::uint64_t number_ = 0;
  std::uint64_t since_ = 0;
};

/// Reads what is left of a fact or a row none of whose fields this version knows.
void skip_unknown_fields(Decoder& in);
inline void skip_fields(Decoder& in) {
  if (!in.empty()) skip_unknown_fields(in);
}

/// Why `in` failed: store_too_new, naming the part, when it met one that must be understood,
/// `otherwise` for any other bytes.
Error unreadable(const Decoder& in, Errc otherwise, std::string_view what);

/// Whose fact: each machine has its number, below 8, for good.
using FactOwner = Strong<struct FactOwnerTag, std::uint8_t>;

/// The facts of one machine, as readers of bytes and errors need to know them.
struct FactSet {
  FactOwner owner;
  std::string_view name;                    // "queues".
  std::span<const std::string_view> kinds;  // The name of each kind this version knows.
};

/// A fact as it lies in a round, not yet looked into.
struct FactFrame {
  FactOwner owner;
  std::uint64_t kind = 0;
  std::string_view body;
};
inline FactFrame read_frame(Decoder& in) {
  const std::uint64_t tag = in.varint();
  return {.owner = FactOwner{static_cast<std::uint8_t>(tag & 7U)},
          .kind = tag >> 3U,
          .body = in.blob()};
}

/// Nothing, if a reader that does not know the frame's kind may go on without it; otherwise an
/// error that names the kind and the format it takes.
Status skip_frame(const FactFrame& frame, std::string_view owner_name);
/// The error of a fact whose body ended `in` badly.
Error unreadable_fact(const FactSet& set, const FactFrame& frame, const Decoder& in);

/// A kind of fact that is younger than format 2 says what a reader shall do that does not know it:
/// `static constexpr Need kNeed{3};`.
template <class Fact>
concept YoungFact = requires {
  { Fact::kNeed } -> std::convertible_to<Need>;
};

/// Appends the frame of `fact`, whose body `body(fact)` appends to `out`; `about` is a guess at its
/// bytes. `FirstKinds` is how many kinds the machine had when format 2 was new.
template <std::size_t FirstKinds, class... Facts, class Body>
void write_fact(Encoder& out, const FactSet& set, const std::variant<Facts...>& fact,
                std::size_t about, const Body& body) {
  static_assert([]<std::size_t... I>(std::index_sequence<I...>) {
    return ((YoungFact<Facts> == (I >= FirstKinds)) && ...);
  }(std::index_sequence_for<Facts...>{}));
  out.varint(fact.index() << 3U | set.owner.value);
  out.blob_of(about, [&] {
    std::visit(
        [&]<class Fact>(const Fact& happened) {
          if constexpr (YoungFact<Fact>) out.varint(Fact::kNeed.since);
          body(happened);
        },
        fact);
  });
}

/// Reads the frame of a kind that `FactVariant` has: `read(in, fact)` reads the body's own part.
/// Fails with malformed or store_too_new.
template <class FactVariant, class Read>
Result<FactVariant> read_fact(const FactSet& set, const FactFrame& frame, const Read& read) {
  Result<FactVariant> fact;
  Decoder in(frame.body);
  const bool known = frame.owner == set.owner && frame.kind < std::variant_size_v<FactVariant> &&
                     read_tagged(
                         static_cast<std::uint8_t>(frame.kind), *fact,
                         [&]<class Fact>(Fact& happened) {
                           if constexpr (YoungFact<Fact>) in.varint();
                           read(in, happened);
                         });
  skip_fields(in);
  if (!known || !in.ok()) return unreadable_fact(set, frame, in);
  return fact;
}

}  // namespace baton
