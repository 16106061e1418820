#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pipeline/schema/schema_limits.h"

namespace baton::schema {

enum class JsonKind : std::uint8_t { null, boolean, number, string, array, object, key };
std::string_view to_string(JsonKind kind);

/// Index of a node in its document. 0 is the root. The root is not a child of any node, so 0 also
/// means "none".
using JsonIndex = std::uint32_t;

/// One value of a document, or the key of a member; the value of a key is the node after it.
struct JsonNode {
  // null, true, false, a number: as written. A string, a key: its unescaped characters. An array,
  // an object: as written, from bracket to bracket.
  const char* data = nullptr;
  std::uint32_t size = 0;
  JsonIndex next = 0;       // The first node that is not part of this one.
  std::uint64_t word = 0;   // A number that is_small: its bits. A key: its name_hash().
  std::uint32_t count = 0;  // Elements of an array, members of an object.
  JsonKind kind = JsonKind::null;
  // A number: an integer of at most 18 digits. A boolean: its value. A string or a key: written
  // with escapes, so that `data` is not in the input bytes.
  bool flag = false;

  [[nodiscard]] std::string_view text() const { return {data, size}; }
  [[nodiscard]] bool is_small() const { return flag; }
  [[nodiscard]] std::int64_t small() const { return static_cast<std::int64_t>(word); }
};

/// A JSON document as a flat list of nodes, in the order of the text. simdjson checks UTF-8 and
/// finds where tokens begin. The rest is done here, because numbers are kept as written (an order's
/// price must not pass through a double), keys are compared, and strings without escapes are not
/// copied. A reused object stops allocating. Not thread-safe.
///
/// Invariant: after a successful read(), the nodes are one complete value; the keys of an object
/// differ.
class JsonDocument {
 public:
  explicit JsonDocument(std::size_t bytes_max = kDocumentBytesDefault);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;

  /// Reads `bytes`, which must live as long as the nodes are used. Fails with malformed, and the
  /// byte at which it stops being JSON: one value, in UTF-8, with no key twice in an object.
  Status read(std::string_view bytes);

  /// Frees the memory that only reading needs, for a document that is kept.
  void settle();

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const JsonNode& node(JsonIndex at) const { return nodes_[at]; }
  [[nodiscard]] const JsonNode& root() const { return nodes_[0]; }
  /// The value of a member; 0 if there is none, or if `object` is not an object.
  [[nodiscard]] JsonIndex member(JsonIndex object, std::string_view name) const;
  /// The member, or the element with index `name`; 0 if there is none.
  [[nodiscard]] JsonIndex child(JsonIndex parent, std::string_view name) const;
  /// The value as written.
  [[nodiscard]] std::string_view source(JsonIndex at) const;
  /// The JSON pointer (RFC 6901) of a value, or of the value of a key.
  [[nodiscard]] std::string pointer(JsonIndex at) const;

 private:
  friend class JsonReader;
  class Indexer;

  std::size_t bytes_max_;
  std::unique_ptr<Indexer> indexer_;
  std::vector<JsonNode> nodes_;  // Grows only; `size_` of them are in use.
  std::size_t size_ = 0;
  std::string unescaped_;  // Strings that had escapes. Reserved before it is written to.
};

}  // namespace baton::schema
