#pragma once

#include <cstddef>

#include "base/assert.h"

namespace baton {

/// A link in one IntrusiveList; an item derives from it, once per list (by tag). Knows whether the
/// item is listed, and never outlives its membership.
template <class Tag>
struct ListHook {
  // The tag only tells lists apart; it is not a derived class, as the check assumes.
  // NOLINTBEGIN(bugprone-crtp-constructor-accessibility)
  ListHook() = default;
  ListHook(const ListHook&) = delete;
  // NOLINTEND(bugprone-crtp-constructor-accessibility)
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { BATON_ASSERT(!listed()); }

  [[nodiscard]] bool listed() const { return next != nullptr; }

  ListHook* next = nullptr;
  ListHook* previous = nullptr;
};

/// A doubly linked list of items that live elsewhere: no allocation, O(1) to add, remove and
/// rotate.
template <class T, class Tag>
class IntrusiveList {
 public:
  IntrusiveList() { end_.next = end_.previous = &end_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() {
    while (!empty()) remove(front());
    end_.next = end_.previous = nullptr;
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] T& front() const {
    BATON_ASSERT(!empty());
    return static_cast<T&>(*end_.next);
  }
  [[nodiscard]] T& back() const {
    BATON_ASSERT(!empty());
    return static_cast<T&>(*end_.previous);
  }

  void push_back(T& item) {
    Hook& hook = item;
    BATON_ASSERT(!hook.listed());
    hook.next = &end_;
    hook.previous = end_.previous;
    end_.previous->next = &hook;
    end_.previous = &hook;
    ++size_;
  }

  void remove(T& item) {
    Hook& hook = item;
    BATON_ASSERT(hook.listed());
    hook.previous->next = hook.next;
    hook.next->previous = hook.previous;
    hook.next = hook.previous = nullptr;
    --size_;
  }

  /// Adds the item at the end, unless it is listed already.
  void ensure(T& item) {
    if (!static_cast<Hook&>(item).listed()) push_back(item);
  }
  /// Removes the item, if it is listed.
  void drop(T& item) {
    if (static_cast<Hook&>(item).listed()) remove(item);
  }
  /// Moves the first item to the end.
  void rotate() {
    T& first = front();
    remove(first);
    push_back(first);
  }

  /// Calls `visit` for each, in order; `visit` must not change the list.
  template <class Visit>
  void for_each(Visit visit) const {
    for (Hook* hook = end_.next; hook != &end_; hook = hook->next) visit(static_cast<T&>(*hook));
  }
  /// The same for the first `count` of them.
  template <class Visit>
  void for_first(std::size_t count, Visit visit) const {
    Hook* hook = end_.next;
    for (std::size_t i = 0; i < count && hook != &end_; ++i, hook = hook->next) {
      visit(static_cast<T&>(*hook));
    }
  }

 private:
  using Hook = ListHook<Tag>;

  mutable Hook end_;
  std::size_t size_ = 0;
};

}  // namespace baton
