#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/assert.h"

namespace baton {

/// A value that one thread replaces while any number of others read it: no thread ever waits. (The
/// standard library's atomic shared_ptr is a spin lock inside: a reader that is suspended in it
/// would stop the writer.)
///
/// One 64-bit word holds the address of the current node and, in the upper 16 bits that no address
/// uses, how many readers are copying from it right now. The writer swaps the word and adds that
/// number to the old node's balance; each reader subtracts one. The last one deletes the node.
template <class T>
class Published {
 public:
  explicit Published(std::shared_ptr<const T> value) : word_(word_of(new Node(std::move(value)))) {}
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;
  ~Published() { delete node_of(word_.load()); }

  [[nodiscard]] std::shared_ptr<const T> load() const {
    std::uint64_t word = word_.fetch_add(kOneReader, std::memory_order_acq_rel) + kOneReader;
    Node* const node = node_of(word);
    std::shared_ptr<const T> value = node->value;
    // While the node is current the count is in the word. An address cannot come back meanwhile:
    // the node is not deleted before we have left it.
    while (node_of(word) == node) {
      if (word_.compare_exchange_weak(word, word - kOneReader, std::memory_order_acq_rel)) {
        return value;
      }
    }
    settle(node, -1);
    return value;
  }

  /// Called by one thread at a time.
  void store(std::shared_ptr<const T> value) {
    const std::uint64_t old =
        word_.exchange(word_of(new Node(std::move(value))), std::memory_order_acq_rel);
    settle(node_of(old), static_cast<std::int64_t>(old / kOneReader));
  }

 private:
  struct Node {
    explicit Node(std::shared_ptr<const T> shared) : value(std::move(shared)) {}
    std::shared_ptr<const T> value;
    std::atomic<std::int64_t> readers_owed = 0;
  };

  static constexpr std::uint64_t kOneReader = std::uint64_t{1} << 48U;
  static_assert(sizeof(void*) == sizeof(std::uint64_t));

  static std::uint64_t word_of(Node* node) {
    const auto word = reinterpret_cast<std::uint64_t>(node);  // NOLINT
    BATON_ASSERT(word < kOneReader);
    return word;
  }
  static Node* node_of(std::uint64_t word) {
    return reinterpret_cast<Node*>(word % kOneReader);  // NOLINT
  }
  // Only the last one reaches zero, since the writer's part is added in one piece and before that
  // the balance is negative.
  static void settle(Node* node, std::int64_t change) {
    if (node->readers_owed.fetch_add(change, std::memory_order_acq_rel) + change == 0) delete node;
  }

  mutable std::atomic<std::uint64_t> word_;
};

}  // namespace baton
